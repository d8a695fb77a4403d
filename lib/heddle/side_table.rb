# frozen_string_literal: true

module Heddle
  # Heddle's records about objects of other libraries, separate for each Ractor. A record exists as long as its object.
  # A record must not refer to its object: then neither would ever be collected.
  #
  # @api private
  class SideTable
    # @param name [Symbol] of the Ractor-local variable that has the table
    def initialize(name)
      @name = name
      freeze
    end

    def [](object) = table[object]

    def []=(object, value)
      table[object] = value
    end

    # @return the object's value; the block makes the first one
    def fetch(object) = table[object] || (table[object] = yield)

    def delete(object) = table.delete(object)

    private

    # The map compares its keys by `eql?`, so they must not be Hashes, Arrays or Strings.
    def table = Ractor.current[@name] ||= ObjectSpace::WeakKeyMap.new
  end
end
