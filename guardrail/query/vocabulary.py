"""What a query that only reads may be made of: kinds of syntax nodes, and functions by dialect.

Lists of what is allowed, never of what is forbidden: what a newer parser or a newer server brings is refused
until somebody has looked at it. Plain data; the store's authorizer uses the same functions as the proof.
"""

from __future__ import annotations

from typing import Final

from guardrail.query.proved import Dialect


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NODES: Final = _words("""
    Select Union Intersect Except Values Subquery With CTE TableAlias
    From Join Lateral Unnest Where Group Having Order Ordered Limit Offset Fetch LimitOptions Distinct
    GroupingSets Cube Rollup Window WindowSpec Filter WithinGroup IgnoreNulls RespectNulls
    Table Column Identifier Alias Star Placeholder Paren Tuple Var Kwarg
    Literal Boolean Null HexString BitString ByteString UnicodeString RawString Heredoc Introducer
    And Or Xor Not Is EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Between In Any All Exists
    Like ILike SimilarTo Glob Match Escape RegexpLike RegexpILike MatchAgainst Overlaps Collate
    Add Sub Mul Div IntDiv Mod Neg DPipe
    BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseLeftShift BitwiseRightShift
    Case If Cast TryCast DataType DataTypeParam Interval IntervalSpan AtTimeZone Extract CharacterSet
    Array Bracket Slice ArrayContainsAll ArrayContainedBy ArrayOverlaps
    JSON JSONExtract JSONExtractScalar JSONBExtract JSONBExtractScalar JSONArrayContains JSONKeyValue
    JSONBContains JSONBContainsTopKey JSONBContainsAllTopKeys JSONBContainsAnyTopKeys JSONExtractQuote
    IndexTableHint Distance Adjacent
    JSONBPathExists JSONBDeleteAtPath JSONValue JSONSchema JSONColumnDef ColumnDef
    JSONPath JSONPathRoot JSONPathKey JSONPathSubscript JSONPathWildcard JSONPathSlice JSONPathRecursive
    CurrentDate CurrentTime CurrentTimestamp Localtime Localtimestamp
    CurrentUser SessionUser CurrentRole CurrentCatalog CurrentDatabase
    UtcDate UtcTime UtcTimestamp TsOrDsToTimestamp TsOrDsToDate
""")
"""Kinds of syntax nodes (sqlglot's class names) that neither write, lock, call nor set anything."""

MODIFIERS: Final = _words("STRAIGHT_JOIN SQL_NO_CACHE")
"""MySQL's words after SELECT that only say how to look; `SQL_CALC_FOUND_ROWS` sets what the session answers next."""

VALUES: Final[dict[Dialect, frozenset[str]]] = {
    "sqlite": frozenset(),
    "postgres": _words("user current_role system_user"),
    "mysql": _words("utc_date utc_time utc_timestamp current_role"),
}
"""Words that a server takes for a value where the parser takes them for a column."""

SEQUENCES: Final = _words("nextval currval")
"""Columns of a sequence that MariaDB counts on, or looks up, with `sql_mode` ORACLE, even in quotes."""

AGGREGATES: Final = _words("""
    any_value approx_count_distinct array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop
    covar_samp every group_concat json_agg json_array_agg json_arrayagg json_group_array json_group_object
    json_object_agg json_objectagg jsonb_agg jsonb_group_array jsonb_group_object jsonb_object_agg max median min mode
    percentile percentile_cont percentile_disc range_agg regr_count regr_intercept regr_r2 regr_slope std stddev
    stddev_pop stddev_samp string_agg sum total var_pop var_samp variance
""")
"""Functions of several rows, which make no condition of one."""

_COMMON: Final = """
    abs acos asin atan atan2 avg cast ceil ceiling coalesce concat concat_ws cos count cume_dist degrees dense_rank
    exp first_value floor lag last_value lead length ln log lower ltrim max min mod nth_value ntile nullif
    percent_rank pi pow power radians rank replace round row_number rtrim sign sin sqrt substr substring sum tan
    trim upper
"""

_SQLITE: Final = """
    acosh asinh atanh char cosh current_date current_time current_timestamp date datetime format glob
    group_concat hex if ifnull iif instr json json_array json_array_insert json_array_length json_each
    json_error_position json_extract json_group_array json_group_object json_insert json_object json_patch
    json_pretty json_quote json_remove json_replace json_set json_tree json_type json_valid julianday
    jsonb jsonb_array jsonb_array_insert jsonb_each jsonb_extract jsonb_group_array jsonb_group_object jsonb_insert
    jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set jsonb_tree
    like likelihood likely log10 log2 match median octet_length percentile percentile_cont percentile_disc printf
    quote random regexp sinh soundex strftime string_agg subtype tanh time timediff total trunc typeof
    unhex unicode unistr unistr_quote unixepoch unlikely -> ->>
"""

_POSTGRES: Final = """
    age all any_value array array_agg array_append array_cat array_dims array_fill array_length array_lower array_ndims
    array_position array_positions array_prepend array_remove array_replace array_to_json array_to_string
    array_upper ascii bit_and bit_length bit_or bit_xor bool_and bool_or btrim cardinality cbrt char_length
    character_length chr clock_timestamp convert_from convert_to corr cot covar_pop covar_samp
    current_database date date_bin date_part date_trunc decode div encode every
    extract format gcd gen_random_uuid generate_series generate_subscripts get_bit get_byte greatest
    grouping hash_record_extended hashtext hashtextextended host int4range int8range isempty isfinite
    json_agg json_array_elements json_array_elements_text json_array_length json_build_array
    json_build_object json_each json_each_text json_extract_path json_extract_path_text json_object
    json_object_agg json_object_keys json_strip_nulls json_to_record json_to_recordset json_typeof
    jsonb_agg jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array
    jsonb_build_object jsonb_each jsonb_each_text jsonb_extract_path jsonb_extract_path_text jsonb_object
    jsonb_object_agg jsonb_object_keys jsonb_path_exists jsonb_path_match jsonb_path_query
    jsonb_path_query_array jsonb_path_query_first jsonb_pretty jsonb_set jsonb_strip_nulls jsonb_to_record
    jsonb_to_recordset jsonb_typeof justify_days justify_hours justify_interval lcm least left log10 lpad
    make_date make_interval make_time make_timestamp make_timestamptz masklen md5 mode now num_nonnulls
    num_nulls numnode octet_length overlay percentile_cont percentile_disc pg_typeof plainto_tsquery
    phraseto_tsquery position quote_ident quote_literal quote_nullable random regexp_count regexp_instr
    regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table
    regexp_substr regr_count regr_intercept regr_r2 regr_slope repeat reverse right row row_to_json rpad scale
    set_masklen sha224 sha256 sha384 sha512 similarity some split_part starts_with statement_timestamp stddev
    stddev_pop stddev_samp string_agg string_to_array string_to_table strpos timeofday to_ascii to_char to_date
    to_hex to_json to_jsonb to_number to_timestamp to_tsquery to_tsvector transaction_timestamp translate trunc
    ts_rank unistr unnest upper_inf uuid_generate_v4 var_pop var_samp variance websearch_to_tsquery width_bucket
"""

_MYSQL: Final = """
    adddate addtime any_value ascii bin bin_to_uuid bit_and bit_count bit_length bit_or bit_xor char
    char_length character_length chr conv convert convert_tz cot crc32 curdate curtime current_date
    current_time current_timestamp database date date_add date_format date_sub datediff day dayname
    dayofmonth dayofweek dayofyear elt export_set extract field find_in_set format from_base64 from_days
    from_unixtime greatest group_concat grouping hex hour if ifnull inet_aton inet_ntoa insert instr isnull
    json_array json_array_append json_array_insert json_arrayagg json_contains json_contains_path
    json_depth json_exists json_extract json_insert json_keys json_length json_merge_patch json_merge_preserve json_object
    json_objectagg json_overlaps json_pretty json_query json_quote json_remove json_replace json_search json_set
    json_table json_type json_unquote json_valid json_value last_day lcase least left localtime localtimestamp locate
    log10 log2 lpad make_set makedate maketime md5 median microsecond mid minute month monthname now nvl oct
    octet_length ord percentile_cont percentile_disc period_add period_diff position quarter quote rand regexp_instr regexp_like regexp_replace
    regexp_substr repeat reverse right row rpad sec_to_time schema second sha sha1 sha2 soundex space std stddev stddev_pop
    stddev_samp str_to_date strcmp subdate substring_index subtime sysdate time time_format time_to_sec timediff
    timestamp timestampadd timestampdiff to_base64 to_char to_days to_seconds truncate ucase unhex
    unix_timestamp utc_date utc_time utc_timestamp uuid uuid_to_bin var_pop var_samp variance version week
    weekday weekofyear weight_string year yearweek
"""

FUNCTIONS: Final = {
    "sqlite": _words(_COMMON + _SQLITE),
    "postgres": _words(_COMMON + _POSTGRES),
    "mysql": _words(_COMMON + _MYSQL),
}
"""Functions that only compute, by dialect, in lower case. Left out on purpose: whatever writes, sleeps, locks, reads
files, loads code, runs text as SQL, or allocates as much as it is told to (`randomblob`, `zeroblob`)."""

_INTERNAL_TABLES: Final = _words("sqlite_dbpage sqlite_stmt dbstat bytecode tables_used fts3tokenize")


def is_internal(table: str) -> bool:
    """Whether a name stands for a virtual table of SQLite's own, that tells of its inside; no query may read it."""
    return table.lower() in _INTERNAL_TABLES or table.lower().startswith("pragma_")
