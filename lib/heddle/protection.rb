# frozen_string_literal: true

require "heddle/autoloads"
require "heddle/events"

module Heddle
  # The protections: they prevent a fiber from blocking the others, or report that one does. Each is switched on and off
  # by its name, for the whole process.
  #
  # A protection is an object with +enable(**options)+, +disable+, +enabled?+ and +status+ (a Hash with its state, and
  # the reason if a part of it does not work). Each protection is in its own file, which is loaded at the first use.
  #
  # @api private
  module Protection
    # The file that registers each protection.
    FILES = {
      offload: "heddle/offload",
      preempt: "heddle/preemption",
      stall_report: "heddle/stalls",
      handoff: "heddle/handoff",
      callback_report: "heddle/callback_report"
    }.freeze

    Autoloads.add(self, "heddle/protection")

    @registered = {}
    @reporter = ->(report) { Events.report(report.event, **report.fields) }
    @lock = Thread::Mutex.new
    @users = {}
    @on_for_users = []

    class << self
      # Registers a protection.
      # @param name [Symbol]
      # @param protection [#enable, #disable, #enabled?, #status]
      def register(name, protection)
        @lock.synchronize { @registered = @registered.merge(name => protection).freeze }
      end

      # @return [Array<Symbol>] the names that {Heddle.enable} accepts
      def names = FILES.keys | @registered.keys

      # @param name [Symbol, String]
      # @return [#enable, #disable, #enabled?, #status]
      # @raise [ArgumentError] for an unknown name
      def fetch(name)
        name = name.to_s.to_sym
        require FILES[name] if FILES.key?(name) && !@registered.key?(name)
        @registered.fetch(name) do
          raise ArgumentError, "unknown protection #{name.inspect} (known: #{names.map(&:inspect).join(", ")})"
        end
      end

      # Switches protections on while the block runs. Afterwards, switches off those that no other code needs.
      # @param names [Array<Symbol>]
      # @return what the block returns
      def during(names, &) = Wanted.new(names).during(&)

      # Counts one more user of a protection, and switches it on if it is off.
      # @param name [Symbol]
      def acquire(name)
        protection = fetch(name)
        @lock.synchronize do
          @users[name] = @users.fetch(name, 0) + 1
          @on_for_users |= [name] unless protection.enabled?
        end
        protection.enable unless protection.enabled?
      end

      # Counts one user fewer. After the last user, the protection is switched off, unless the program itself has
      # switched it on.
      # @param name [Symbol]
      def release(name)
        last = @lock.synchronize do
          @users[name] -= 1
          @users[name].zero? && @on_for_users.include?(name) && (@on_for_users -= [name])
        end
        fetch(name).disable if last
      end

      # Reports to the operator.
      # @param report [#event, #fields, #advice] an event and advice, such as a {Stall}
      def report(report) = @reporter.call(report)

      # While the block runs, passes reports to `reporter`.
      # @param reporter [#call] called in a fiber of a loop
      # @return what the block returns
      def reporting_to(reporter)
        before, @reporter = @reporter, reporter
        yield
      ensure
        @reporter = before
      end

      # Marks a protection that the program itself has switched on, so that {.release} does not switch it off.
      def keep(name) = @lock.synchronize { @on_for_users -= [name] }

      # @return [Array<Symbol>] the protections that are on
      def enabled = @registered.filter_map { |name, protection| name if protection.enabled? }

      # @param why [Hash{Symbol => String}] the name of a protection => why it is off
      # @return [String] a line for display: the protections that are on, and those that are off with the reason
      #   ({Table})
      def summary(why = {}) = Table.new(why).to_s
    end
  end

  class << self
    # Switches protections on for all loops of Heddle in this process, present and future. Other schedulers, and threads
    # without a scheduler, are not affected. If a protection is already on, only its options change.
    #
    #     Heddle.enable :offload
    #
    # @param names [Array<Symbol>] see {Protection::FILES}
    # @param options [Hash] options of the protection, allowed with a single name: see docs/stalls.md and
    #   docs/offload.md
    # @return [Array<Symbol>] the protections that are on now
    # @raise [ArgumentError] for an unknown name
    def enable(*names, **options)
      if names.empty? || (names.size > 1 && !options.empty?)
        raise ArgumentError, "Heddle.enable needs at least one name (#{Protection.names.map(&:inspect).join(", ")}), " \
                             "and accepts options only with a single name"
      end
      names.map { |name| Protection.fetch(name) }.each { |protection| protection.enable(**options) }
      names.each { |name| Protection.keep(name.to_sym) }
      enabled
    end

    # Switches protections off. Calls that already run are not affected.
    #
    # @param names [Array<Symbol>] without names, all are switched off
    # @return [Array<Symbol>] the protections that are still on
    def disable(*names)
      names = Protection.enabled if names.empty?
      names.each { |name| Protection.fetch(name).disable }
      enabled
    end

    # @return [Array<Symbol>] the protections that are on
    def enabled = Protection.enabled
  end
end
