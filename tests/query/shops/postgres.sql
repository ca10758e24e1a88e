CREATE TYPE order_status AS ENUM ('open', 'paid', 'refunded');
CREATE TYPE "OrderStatus" AS ENUM ('OPEN', 'PAID');
CREATE TABLE orders (
    id integer PRIMARY KEY, customer_id integer, status order_status, kind "OrderStatus", amount numeric(10, 2),
    weight double precision, placed timestamptz, due date, opens time, took interval, tags text[], scores integer[],
    document jsonb, raw json, token uuid, photo bytea, ip inet, slots int4range, ok boolean, note text,
    "Weird Name" text, total numeric GENERATED ALWAYS AS (amount * 2) STORED
);
CREATE TABLE refunds (id integer PRIMARY KEY, order_id integer NOT NULL REFERENCES orders, amount numeric, made timestamp);
CREATE TABLE "Order" (id integer PRIMARY KEY, "inbox/outbox" text, "sel""ect" integer);
CREATE TABLE members (id integer PRIMARY KEY, name text, level integer DEFAULT 1, boss integer);
CREATE TABLE parted (id integer, year integer) PARTITION BY LIST (year);
CREATE TABLE parted_2024 PARTITION OF parted FOR VALUES IN (2024);
CREATE VIEW paid AS SELECT id, amount FROM orders WHERE status = 'paid';
CREATE MATERIALIZED VIEW totals AS SELECT customer_id, sum(amount) AS amount FROM orders GROUP BY customer_id WITH NO DATA;
CREATE SEQUENCE tickets;
INSERT INTO orders VALUES
    (1, 7, 'paid', 'PAID', 19.50, 1.5, '2024-01-31 10:00+00', '2024-02-29', '10:30', '1 day 2 hours', '{red,"big one"}',
     '{3,1,2}', '{"x": 1, "y": {"z": 2}, "y.z": 7, "l": [{"n": 5}, {"n": 15}], "s": "it''s"}', '{"a": {"b": "c"}}',
     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\x00ff', '10.0.0.1/24', '[1,5)', true, E'two words\\', 'odd'),
    (2, 7, 'open', 'OPEN', 3, -0.25, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, 8, 'paid', NULL, 4, 0, '2024-03-01 23:30+00', '2024-03-01', '00:00', '3 months', '{}', '{}', '{}', '{}',
     NULL, '', '::1', 'empty', false, 'Größe 50%', '');
INSERT INTO refunds VALUES (1, 1, 19.5, '2024-02-01 12:00'), (2, 1, 0.5, '2024-02-02 00:00:00.25');
INSERT INTO "Order" VALUES (1, 'in', 5);
INSERT INTO members VALUES (1, 'Ann', 3, NULL), (2, 'Ben', 1, 1), (3, 'Cy', 1, 2);
INSERT INTO parted VALUES (1, 2024);

-- What an owner may have made, and what a query could run.
CREATE FUNCTION strike(integer) RETURNS integer LANGUAGE sql AS 'DELETE FROM members WHERE id = $1 RETURNING id';
CREATE FUNCTION struck(members) RETURNS integer LANGUAGE sql AS 'DELETE FROM members WHERE id = $1.id RETURNING id';
CREATE FUNCTION lower(integer) RETURNS integer LANGUAGE sql AS 'DELETE FROM members WHERE id = $1 RETURNING id';
CREATE FUNCTION strike_pair(integer, integer) RETURNS integer LANGUAGE sql AS 'DELETE FROM members WHERE id = $1 RETURNING id';
CREATE OPERATOR <-> (LEFTARG = integer, RIGHTARG = integer, FUNCTION = strike_pair);
CREATE DOMAIN struck_id AS integer CHECK (strike(VALUE) IS NOT NULL);
CREATE VIEW sly AS SELECT strike(id) FROM members;
CREATE PROCEDURE strike_all() LANGUAGE sql AS 'DELETE FROM members';
SELECT lo_from_bytea(424242, 'kept');
