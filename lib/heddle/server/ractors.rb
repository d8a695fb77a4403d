# frozen_string_literal: true

module Heddle
  class Server
    # The experimental mode ractor: all that is particular to it is in this folder.
    module Ractors
      autoload :DEFINITION, "heddle/server/ractors/definition"
      autoload :EngineStatistics, "heddle/server/ractors/engine_statistics"
      autoload :Mode, "heddle/server/ractors/mode"
      autoload :Serving, "heddle/server/ractors/serving"
      autoload :Sharing, "heddle/server/ractors/sharing"
      autoload :Worker, "heddle/server/ractors/worker"

      # Modules that only the main Ractor uses.
      NOT_THERE = %i[CLI Rails].freeze
      private_constant :NOT_THERE

      class << self
        # Before the first Ractor: one of Ruby 3.3 can load nothing by itself.
        # @return [void]
        def prepare
          Warning[:experimental] = false # Ruby says at each start that Ractors are experimental; docs/modes.md does
          require "heddle/concurrency/deadline"
          Heddle.eager_load
          [Heddle, self, Log, Heddle::Net, Concurrency].each { |namespace| load_all(namespace) }
        end

        private

        def load_all(namespace)
          (namespace.constants - NOT_THERE).each { |name| namespace.const_get(name) if namespace.autoload?(name) }
        end
      end
    end
  end
end
