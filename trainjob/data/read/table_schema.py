"""Names and types of the columns of a table."""

import pyarrow as pa

from trainjob.data.read.conll import ConllFile
from trainjob.data.read.json_lines import JSONLinesFile
from trainjob.data.read.label_lists import SeparateLabels
from trainjob.data.read.partitions import Partition
from trainjob.data.read.rows import SourcePart
from trainjob.data.read.tables import CSVFile, ParquetRows


def table_schema(part: SourcePart) -> pa.Schema:
    """The columns of the part's file and of its partition folders. The columns of CSV and JSON Lines are text; those
    of JSON Lines that hold lists or objects on any line have the type list<null>."""
    if isinstance(part, SeparateLabels):
        return table_schema(part.part)
    if isinstance(part, Partition):
        schema = table_schema(part.part)
        for name in part.names:
            index = schema.get_field_index(name)
            field = pa.field(name, pa.string())
            schema = schema.append(field) if index < 0 else schema.set(index, field)
        return schema
    if isinstance(part, ParquetRows | ConllFile):
        return part.schema()
    if isinstance(part, JSONLinesFile):
        nested = pa.list_(pa.null())
        return pa.schema([(name, pa.string() if plain else nested) for name, plain in part.plain_columns().items()])
    assert isinstance(part, CSVFile)
    return pa.schema([(name, pa.string()) for name in part.names()])
