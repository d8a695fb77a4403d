# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # The table of a hosts file (hosts(5)).
      #
      # @api private
      class Hosts
        NONE = [].freeze
        private_constant :NONE

        # @param text [String]
        # @return [Hosts]
        def self.parse(text)
          table = {}
          text.each_line do |line|
            address, *names = line.sub(/#.*/m, "").split
            next unless address && Literal.parse(address)

            names.each { |name| (table[name.downcase.chomp(".")] ||= []) << address }
          end
          new(table)
        end

        def initialize(table)
          @table = table.transform_values { |addresses| addresses.uniq.freeze }
        end

        # @param name [String] in lower case
        # @return [Array<String>] addresses in the order of the file
        def [](name)
          @table.fetch(name, NONE)
        end
      end
    end
  end
end
