# frozen_string_literal: true

require "yaml"
require_relative "catalog"
require_relative "page"

module Bench
  module Seeds
    # What `bin/bench seeds` does.
    module Command
      module_function

      # @param arguments [Array<String>]
      # @yieldparam arguments [Array<String>] those that are not about the page: they run rows
      # @yieldreturn [Boolean]
      # @return [Boolean] whether everything that was asked for was done
      def run(arguments)
        case arguments.first
        when nil then puts(Page.new(Catalog.load).to_text) || true
        when "--write" then warn("written: #{Page.new(Catalog.load).write}") || true
        when "--check" then check
        when "--measure" then measure(arguments.drop(1))
        else yield(arguments)
        end
      end

      def check
        page = Page.new(Catalog.load)
        complaints = page.complaints
        complaints.each { |complaint| warn(complaint) }
        complaints.empty?
      end

      # @param arguments [Array<String>] the lines, by comma; further options are those of the benchmarks
      def measure(arguments)
        ids = arguments.shift&.split(",") or raise ArgumentError, "--measure needs lines, such as A8,C3"
        Catalog.load.measurements(ids, arguments).all? do |command|
          warn(command.join(" "))
          system(*command, chdir: ROOT)
        end
      rescue ArgumentError => e
        warn("bin/bench seeds: #{e.message}")
        false
      end
      private_class_method :check, :measure
    end
  end
end
