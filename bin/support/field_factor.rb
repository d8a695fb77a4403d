# frozen_string_literal: true

# Prints the factor for field_names.h: run it when a name is added to fields.h. It is the one that field_names.h has, if
# that still spreads the names without a collision.

FOLDER = File.expand_path("../../ext/heddle/http", __dir__)

names = File.read(File.join(FOLDER, "fields.h")).scan(/^    X\((\w+), "([^"]+)"\)/)
header = File.read(File.join(FOLDER, "field_names.h"))
factor = header[/HEDDLE_FIELD_FACTOR UINT32_C\((\d+)\)/, 1].to_i
bits = header[/HEDDLE_FIELD_SLOT_BITS = (\d+)/, 1].to_i
keys = names.map { |_, name| (name.bytesize << 16) | (name.getbyte(0) << 8) | name.getbyte(-2) }
abort "two names have the same size, first and last but one letter: the hash needs another letter" if keys.uniq!

slots = ->(number) { keys.map { |key| (key * number & 0xFFFFFFFF) >> (32 - bits) } }
random = Random.new(1)
factor = random.rand(1 << 32) | 1 while slots.call(factor).uniq.size < keys.size

puts "#define HEDDLE_FIELD_FACTOR UINT32_C(#{factor})"
