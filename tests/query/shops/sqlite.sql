CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer_id INT, status TEXT, amount NUMERIC, placed TEXT, document JSON
);
CREATE INDEX orders_by_customer ON orders (customer_id);
CREATE TABLE refunds (id INTEGER PRIMARY KEY, order_id INT NOT NULL, amount NUMERIC);
CREATE TABLE "order" (id INTEGER PRIMARY KEY, "inbox/outbox" TEXT, "sel""ect" INT);
CREATE VIEW paid AS SELECT id, amount FROM orders WHERE status = 'paid';
CREATE VIRTUAL TABLE notes USING fts5 (body);
INSERT INTO orders VALUES
    (1, 7, 'paid', 19.5, '2024-01-31', '{"x": 1, "y": {"z": 2}, "y.z": 7, "l": [1, 2, 3]}'),
    (2, 7, 'open', 3, NULL, NULL),
    (3, 8, 'Paid', 4, '2024-03-01', '{}');
INSERT INTO refunds VALUES (1, 1, 19.5), (2, 1, 0.5);
INSERT INTO "order" VALUES (1, 'in', 5);
INSERT INTO notes VALUES ('two words');
