# frozen_string_literal: true

require "heddle/arguments"

module Heddle
  module Net
    module DNS
      # One resource record of class IN. Frozen.
      #
      # - name [String] the owner, without the final dot, in its original letter case
      # - type [Symbol]
      # - ttl [Integer] seconds
      # - data [Object] one of {Data}'s classes
      Record = ::Data.define(:name, :type, :ttl, :data) do
        # @param data [Object] see {Data.from}
        def self.of(name, type, ttl, data)
          Arguments.refuse("the TTL", ttl, "whole seconds from 0 to #{self::MAX_TTL}") unless
            ttl.is_a?(Integer) && ttl.between?(0, self::MAX_TTL)

          Codes.type_number(type)
          new(name, type, ttl, Data.from(type, data))
        end

        def write(writer)
          writer.name(name)
          writer.pack([Codes.type_number(type), Codes::IN, ttl], "nnN")
          writer.sized { data.write(writer) }
        end

        # @return [String] text in the format of a zone file
        def to_s = "#{name}. #{ttl} IN #{type} #{data}"
      end
      # RFC 2181, section 8. A greater TTL in a message counts as 0.
      Record::MAX_TTL = 0x7fff_ffff
    end
  end
end
