# frozen_string_literal: true

module Heddle
  module Net
    module DNS
      # The question of a query. Frozen.
      #
      # - name [String] in lower case, without the final dot
      # - type [Symbol]
      # - klass [Integer] 1 for IN
      # - wire [String] the name in wire format as received; the response repeats it in the same letter case
      Question = ::Data.define(:name, :type, :klass, :wire) do
        def self.read(reader)
          wire = reader.name
          type, klass = reader.unpack("nn", 4)
          new(Name.from_wire(wire.downcase).freeze, Codes.type_name(type), klass, wire.freeze)
        end

        # @param name [String]
        # @param type [Symbol]
        def self.of(name, type, klass = Codes::IN)
          wire = Name.to_wire(name)
          new(Name.from_wire(wire.downcase).freeze, type, klass, wire.freeze)
        end

        def write(writer)
          writer.first_name(wire, name)
          writer.pack([Codes.type_number(type), klass], "nn")
        end

        def to_s = "#{name}. #{klass == Codes::IN ? "IN" : "CLASS#{klass}"} #{type}"
      end
    end
  end
end
