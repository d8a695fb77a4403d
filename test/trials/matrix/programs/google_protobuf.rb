# frozen_string_literal: true

require "google/protobuf"
require "google/protobuf/well_known_types"

got = clients do |number|
  values = (0...2_000).to_h { |index| ["key #{index}", (index * number).to_f] }
  bytes = Google::Protobuf::Struct.encode(Google::Protobuf::Struct.from_hash(values))
  Google::Protobuf::Struct.decode(bytes).to_h == values
end
proves("8 tasks encode and decode 2,000 fields, each its own", got.all?)
