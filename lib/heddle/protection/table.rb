# frozen_string_literal: true

require "heddle/protection"

module Heddle
  module Protection
    # Lists the protections that are on in this process, and those that are off with the reason. The server's log at
    # boot and `heddle doctor` show them.
    class Table
      # @!attribute name [String]
      # @!attribute on [Boolean]
      # @!attribute text [String, nil] details if it is on, or the reason why it is off
      Row = Data.define(:name, :on, :text) do
        # @return [String]
        def to_s = text ? "#{name} (#{text})" : name
      end

      # The reason if a protection was simply not enabled.
      NOT_ENABLED = "not enabled"
      private_constant :NOT_ENABLED

      # @param why [Hash{Symbol => String}] the reasons why protections were left out, by name
      def initialize(why = {})
        @why = why
      end

      # @return [Array<Row>]
      def rows = Protection.names.flat_map { |name| name == :offload ? offload : [of(name)] } << guard_pages

      # @return [String] one line with the protections that are on, then those that are off
      def to_s
        on, off = rows.partition(&:on)
        line = on.empty? ? "none" : on.join(", ")
        off.empty? ? line : "#{line}; off: #{together(off)}"
      end

      private

      # Joins protections that are off for the same reason.
      def together(rows)
        rows.group_by(&:text).map do |text, same|
          names = same.map(&:name).join(", ")
          text ? "#{names} (#{text})" : names
        end.join(", ")
      end

      def of(name)
        return Row.new(name.to_s, false, why(name)) unless on?(name)

        reason = Protection.fetch(name).status[:reason]
        Row.new(name.to_s, reason.nil?, reason)
      end

      # Two rows, because Ruby's own C functions and the functions of extensions are intercepted in different ways.
      def offload
        core = "offload of core functions"
        extensions = "offload of extensions"
        return [core, extensions].map { |name| Row.new(name, false, why(:offload)) } unless on?(:offload)

        status = Protection.fetch(:offload).status
        [status[:core] == true ? Row.new(core, true, nil) : Row.new(core, false, status[:core]),
         if status[:extensions].zero? && status[:reason] then Row.new(extensions, false, status[:reason])
         else Row.new(extensions, true, "#{count(status[:extensions], "library", "libraries")} loaded")
         end, *status[:missing].map { |lost| missing(**lost) }]
      end

      # A function of Ruby that offload should intercept, but can't.
      def missing(function:, use:, reason:)
        Row.new("offload of #{use}", false, "#{function}: #{reason}")
      end

      # Heddle's guard pages protect the stacks of fibers, and need no memory mappings. Where the kernel does not
      # support such pages, they are off, and Ruby's own guard page of each fiber needs a mapping.
      def guard_pages
        reason = Scheduler.guard_pages
        reason == :on ? Row.new("guard pages", true, nil) : Row.new("guard pages", false, reason)
      end

      def count(number, one, many) = "#{number} #{number == 1 ? one : many}"

      def on?(name) = Protection.enabled.include?(name)

      def why(name) = @why.fetch(name, NOT_ENABLED)
    end
  end
end
