# frozen_string_literal: true

module Heddle
  module Concurrency
    # Implements `inherit:` of {Heddle.async}: a task gets copies of state from the code that starts it. Later changes
    # on one side do not affect the other. Fiber storage is not included here, because every task inherits it.
    module Inheritance
      # What can be inherited.
      KINDS = %i[tags current trace].freeze
      private_constant :KINDS

      class << self
        # @param kinds [Boolean, Symbol, Array<Symbol>] true: all of them
        # @param block [Proc] the task's block
        # @return [Proc] a block that sets the state and then calls the task's block
        # @raise [ArgumentError] for an unknown kind
        def wrap(kinds, block)
          kinds = kinds == true ? KINDS : Array(kinds)
          wrong = kinds - KINDS
          Arguments.refuse("inherit", wrong.first, "true or any of #{KINDS.join(", ")}") if wrong.any?

          tags = (copy_tags if kinds.include?(:tags) && defined?(::ActiveSupport::IsolatedExecutionState))
          current = (copy_current if kinds.include?(:current) && defined?(::ActiveSupport::CurrentAttributes))
          trace = (::OpenTelemetry::Context.current if kinds.include?(:trace) && defined?(::OpenTelemetry::Context))
          lambda do
            tags&.each { |key, stack| ::ActiveSupport::IsolatedExecutionState[key] = stack }
            instances.update(current) if current
            trace ? ::OpenTelemetry::Context.with_current(trace, &block) : block.call
          end
        end

        private

        # Copies the tags of each tagged logger, because each task pushes and pops its own.
        def copy_tags
          state = ::ActiveSupport::IsolatedExecutionState.scope.current.active_support_execution_state or return
          state.filter_map do |key, stack|
            next unless key.to_s.start_with?("activesupport_tagged_logging_tags:")

            [key, stack.class.new.tap { |copy| copy.push_tags(stack.tags) }]
          end
        end

        def copy_current
          instances.transform_values do |one|
            one.dup.tap { |copy| copy.instance_variable_set(:@attributes, one.attributes.dup) }
          end
        end

        # Calls a private method, which every version of Rails since 7.1 has.
        def instances = ::ActiveSupport::CurrentAttributes.__send__(:current_instances)
      end
    end
  end
end
