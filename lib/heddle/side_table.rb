# frozen_string_literal: true

module Heddle
  # A table of Heddle's records about objects of other libraries, separate for each Ractor. A record exists as long as
  # its object. A record must not refer to its object: otherwise neither would ever be garbage collected.
  #
  # @api private
  class SideTable
    # @param name [Symbol] the name of the Ractor-local variable that contains the table
    def initialize(name)
      @name = name
      freeze
    end

    def [](object) = table[object]

    def []=(object, value)
      table[object] = value
    end

    # @return the record of the object; if it has none, the block creates the record
    def fetch(object) = table[object] || (table[object] = yield)

    def delete(object) = table.delete(object)

    private

    # The map compares its keys by `eql?`, so they must not be Hashes, Arrays or Strings.
    def table = Ractor.current[@name] ||= ObjectSpace::WeakKeyMap.new
  end
end
