"""The same queries in Hyper, if the package tableauhyperapi is there (`tools/setup --hyper`)."""

import os
import re
import tempfile

# The API's files are beside those of the bench's own Python, because they come only on request.
HOW = "tools/setup --hyper"
YEAR = re.compile(r"\byear\((\w+)\)")
# What the extension of DuckDB gives as DECIMAL(18,2) has 15 digits in TPC-H. With 18 Hyper would
# compute (1 - l_discount) in 128 bits.
TYPES = {"BIGINT": "bigint", "INTEGER": "integer", "VARCHAR": "text", "DATE": "date",
         "DECIMAL(18,2)": "numeric(15, 2)"}


class CannotRun(Exception):
    """Hyper is not there, does not start or fails."""


def dialect(sql):
    return YEAR.sub(r"extract(year from \1)", sql)


def import_api():
    try:
        import tableauhyperapi  # pylint: disable=import-outside-toplevel
    except (ImportError, OSError) as error:
        raise CannotRun(f"there is no tableauhyperapi ({HOW}): {error}") from error
    return tableauhyperapi


def parameters(threads):
    """Of the process. A query is computed each time, as in DuckDB. No log is written."""
    return {"soft_concurrent_query_thread_limit": str(threads),
            "hard_concurrent_query_thread_limit": str(threads),
            "query_result_cache_probe": "0", "query_result_cache_store": "0", "log_config": ""}


def _first_line(error):
    return str(error.__cause__ or error).strip().split("\n", maxsplit=1)[0]


class Hyper:
    """A process of Hyper with one database. CannotRun if it cannot be had."""

    def __init__(self, path, threads):
        self._api = import_api()
        self._path = path
        self._process = self._connection = None
        self.version = self._api.__version__
        try:
            self._process = self._api.HyperProcess(
                self._api.Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU,
                parameters=parameters(threads))
            self._connection = self._api.Connection(self._process.endpoint, path,
                                                    self._api.CreateMode.CREATE_AND_REPLACE)
        except (self._api.HyperException, OSError) as error:
            self.close()
            raise CannotRun(f"Hyper does not start: {_first_line(error)}") from error

    def close(self):
        for part in (self._connection, self._process):
            if part is not None:
                part.close()
        if os.path.exists(self._path):
            os.remove(self._path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _execute(self, sql):
        try:
            return self._connection.execute_command(sql)
        except self._api.HyperException as error:
            raise CannotRun(f"Hyper: {_first_line(error)}") from error

    def load(self, con, side, keys):
        """The rows of DuckDB's tables, by Parquet. Hyper learns what the schema of flugs says: no
        column has NULL, and which columns are the key."""
        with tempfile.TemporaryDirectory() as folder:
            for name, key in keys.items():
                file = os.path.join(folder, f"{name}.parquet")
                con.execute(f'copy {side}."{name}" to \'{file}\' (format parquet)')
                columns = con.execute(f'describe {side}."{name}"').fetchall()
                outputs = ", ".join(f"{column}::{TYPES[kind]}" for column, kind, *_ in columns)
                schema = ", ".join(f"{column} {TYPES[kind]} not null"
                                   for column, kind, *_ in columns)
                key = key if isinstance(key, str) else ", ".join(key)
                self._execute(f"create table {name} ({schema}, assumed primary key ({key}))")
                self._execute(f"insert into {name} (select {outputs} from external('{file}'))")
                os.remove(file)

    def count(self, sql):
        """The number of rows, all of which have come here. No value becomes one of Python: the API
        makes them in Python, which takes ten times as long as in DuckDB."""
        count = 0
        try:
            with self._connection.execute_query(dialect(sql)) as result:
                while result.next_row():
                    count += 1
        except self._api.HyperException as error:
            raise CannotRun(f"Hyper: {_first_line(error)}") from error
        return count

    def rows(self, sql):
        """The rows, with the values that DuckDB gives; and of each column the digits behind the
        point, or None."""
        try:
            with self._connection.execute_query(dialect(sql)) as result:
                scales = [column.type.scale if column.type.tag == self._api.TypeTag.NUMERIC
                          else None for column in result.schema.columns]
                rows = [tuple(map(self._value, row)) for row in result]
        except self._api.HyperException as error:
            raise CannotRun(f"Hyper: {_first_line(error)}") from error
        return rows, scales

    def _value(self, value):
        return value.to_date() if isinstance(value, self._api.Date) else value
