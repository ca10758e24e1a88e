CREATE TABLE orders (
    id INT PRIMARY KEY, customer_id INT, status ENUM('open', 'paid', 'refunded'), amount DECIMAL(10, 2), weight DOUBLE,
    placed DATETIME(6), changed TIMESTAMP NULL, due DATE, opens TIME(2), document JSON, tags SET('red', 'big'),
    photo BLOB, token CHAR(36) CHARACTER SET ascii, ok TINYINT(1), note VARCHAR(100), `Weird Name` TEXT,
    total DECIMAL(12, 2) GENERATED ALWAYS AS (amount * 2) STORED, KEY by_customer (customer_id)
);
CREATE TABLE refunds (id INT PRIMARY KEY, order_id INT NOT NULL, amount DECIMAL(10, 2), made DATETIME);
CREATE TABLE `order` (id INT PRIMARY KEY, `inbox/outbox` TEXT, `sel``ect` INT);
CREATE TABLE members (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50), level INT DEFAULT 1, boss INT);
CREATE TABLE notes (body VARCHAR(100), FULLTEXT KEY words (body)) ENGINE = Aria;
CREATE VIEW paid AS SELECT id, amount FROM orders WHERE status = 'paid';
CREATE SEQUENCE tickets;
INSERT INTO orders (id, customer_id, status, amount, weight, placed, changed, due, opens, document, tags, photo, token, ok, note, `Weird Name`) VALUES
    (1, 7, 'paid', 19.50, 1.5, '2024-01-31 10:00:00.25', '2024-01-31 10:00:00', '2024-02-29', '10:30:00.5',
     '{"x": 1, "y": {"z": 2}, "a b": 7, "l": [{"n": 5}, {"n": 15}], "s": "it''s"}', 'red,big', X'00FF',
     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1, 'two words\\', 'odd'),
    (2, 7, 'open', 3, -0.25, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, 8, 'paid', 4, 0, '2024-03-01 23:30:00', NULL, '2024-03-01', '00:00:00', '{}', '', '', NULL, 0, 'Größe 50%', '');
INSERT INTO refunds VALUES (1, 1, 19.5, '2024-02-01 12:00:00'), (2, 1, 0.5, '2024-02-02 00:00:00');
INSERT INTO notes VALUES ('two words'), ('one');
INSERT INTO `order` VALUES (1, 'in', 5);
INSERT INTO members VALUES (1, 'Ann', 3, NULL), (2, 'Ben', 1, 1), (3, 'Cy', 1, 2);

-- What an owner may have made, and what a query could run.
CREATE FUNCTION strike(n INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN DELETE FROM members WHERE id = n; RETURN n; END;
CREATE FUNCTION any_value(n INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN DELETE FROM members WHERE id = n; RETURN n; END;
CREATE VIEW sly_one AS SELECT strike(1);
CREATE PROCEDURE strike_all() DELETE FROM members;
