# frozen_string_literal: true

module Heddle
  class Server
    # The modes. A mode determines how a process runs its requests: in fibers, in threads, one at a time, or in Ractors.
    # See docs/modes.md.
    module Modes
      Autoloads.add(self, "heddle/server/modes")

      # A mode.
      #
      # @!attribute class_name [String] the name of its class, relative to {Server}
      # @!attribute unit [String, nil] what the option `threads` counts in this mode, such as "loop", for display; nil:
      #   the option has no effect
      # @!attribute protections [Array<Symbol>, nil] the protections that it supports; nil: all
      # @!attribute without [String, nil] why it does not support the other protections
      # @!attribute rejects [Hash{Symbol => String}] other features that it does not support, and the reasons
      # @!attribute experimental [Boolean]
      Mode = Data.define(:class_name, :unit, :protections, :without, :rejects, :experimental) do
        def initialize(class_name:, unit:, experimental: false, protections: nil, without: nil, rejects: {}.freeze)
          super
        end

        # @param protection [Symbol]
        # @return [Boolean] whether this mode supports the protection
        def protects?(protection) = protections.nil? || protections.include?(protection)

        # @return [Class] Fibers, Threads, Single or Ractors::Mode
        def implementation = Server.const_get(class_name)

        # @param app [#call]
        # @return [#call] the application in a form that this mode can run
        def share(app) = implementation.respond_to?(:share) ? implementation.share(app) : app
      end

      TABLE = {
        fiber: Mode.new(class_name: "Modes::Fibers", unit: "loop"),
        thread: Mode.new(class_name: "Modes::Threads", unit: "thread", protections: [:handoff],
                         without: "requests run in threads, mode thread"),
        single: Mode.new(class_name: "Modes::Single", unit: nil, protections: [:handoff],
                         without: "requests run in a thread, mode single")
      }.freeze
      private_constant :TABLE

      # @param name [Symbol] the value of the option `mode`
      # @return [Mode]
      def self.fetch(name) = name == :ractor ? Ractors::DEFINITION : TABLE.fetch(name)
    end
  end
end
