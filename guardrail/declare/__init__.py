"""What users declare: policies, tools, contracts, and how they are read from files."""
