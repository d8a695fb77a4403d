# frozen_string_literal: true

require "heddle/autoloads"
require "heddle/events"

module Heddle
  # The protections that keep one fiber from blocking the others: switched on and off by name, for the whole process.
  #
  # A protection is an object with +enable(**options)+, +disable+, +enabled?+ and +status+ (a Hash: its state, and the
  # reason where something is missing). It lives in a file of its own, which is loaded when it is first asked for.
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
      # Makes a protection known.
      # @param name [Symbol]
      # @param protection [#enable, #disable, #enabled?, #status]
      def register(name, protection)
        @lock.synchronize { @registered = @registered.merge(name => protection).freeze }
      end

      # @return [Array<Symbol>] the names that can be given to {Heddle.enable}
      def names = FILES.keys | @registered.keys

      # @param name [Symbol, String]
      # @return [#enable, #disable, #enabled?, #status]
      # @raise [ArgumentError] for an unknown name
      def fetch(name)
        name = name.to_sym
        require FILES[name] if FILES.key?(name) && !@registered.key?(name)
        @registered.fetch(name) do
          raise ArgumentError, "unknown protection #{name.inspect} (known: #{names.map(&:inspect).join(", ")})"
        end
      end

      # Switches protections on while the block runs. After it, switches off those that no other code has switched on.
      # @param names [Array<Symbol>]
      # @return what the block returns
      def during(names, &) = Wanted.new(names).during(&)

      # Switches a protection on for one more user.
      # @param name [Symbol]
      def acquire(name)
        protection = fetch(name)
        @lock.synchronize do
          @users[name] = @users.fetch(name, 0) + 1
          @on_for_users |= [name] unless protection.enabled?
        end
        protection.enable unless protection.enabled?
      end

      # Removes one user: without users the protection is switched off, unless the program has switched it on itself.
      # @param name [Symbol]
      def release(name)
        last = @lock.synchronize do
          @users[name] -= 1
          @users[name].zero? && @on_for_users.include?(name) && (@on_for_users -= [name])
        end
        fetch(name).disable if last
      end

      # Passes a report on to the operator.
      # @param report [#event, #fields, #advice] such as a {Stall}: an event, and what to do about it
      def report(report) = @reporter.call(report)

      # While the block runs, reports go to this callable.
      # @param reporter [#call] called in a fiber of a loop
      # @return what the block returns
      def reporting_to(reporter)
        before, @reporter = @reporter, reporter
        yield
      ensure
        @reporter = before
      end

      # Marks a protection that the program has switched on itself, which stays on.
      def keep(name) = @lock.synchronize { @on_for_users -= [name] }

      # @return [Array<Symbol>] the protections that are on; loads no files
      def enabled = @registered.filter_map { |name, protection| name if protection.enabled? }

      # @param why [Hash{Symbol => String}] the reasons why these protections are off
      # @return [String] the protections that are on, and those that are off with the reason, for a person: see {Table}
      def summary(why = {}) = Table.new(why).to_s
    end
  end

  class << self
    # Switches protections on, for every loop of Heddle in this process, now and later. Other schedulers, and threads
    # without a scheduler, are not affected. If a protection is on already, only its options change.
    #
    #     Heddle.enable :offload
    #
    # @param names [Array<Symbol>] see {Protection::FILES}
    # @param options [Hash] for the protection, where one name is given: docs/stalls.md and docs/offload.md have them
    # @return [Array<Symbol>] the protections that are on now
    # @raise [ArgumentError] for an unknown name
    def enable(*names, **options)
      if names.empty? || (names.size > 1 && !options.empty?)
        raise ArgumentError, "Heddle.enable needs a name (#{Protection.names.map(&:inspect).join(", ")}), " \
                             "and takes options with one name only"
      end
      names.map { |name| Protection.fetch(name) }.each { |protection| protection.enable(**options) }
      names.each { |name| Protection.keep(name.to_sym) }
      enabled
    end

    # Switches protections off again; without names all. Running calls end as they have begun.
    #
    # @param names [Array<Symbol>]
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
