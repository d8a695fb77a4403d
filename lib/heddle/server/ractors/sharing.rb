# frozen_string_literal: true

module Heddle
  class Server
    module Ractors
      # Makes an application shareable by all Ractors, or reports the objects that prevent this.
      class Sharing
        # Objects of these classes belong to one Ractor. The application is searched for them before anything is frozen.
        # Otherwise $stdout might be frozen and could not print the error.
        NEVER = [IO, Thread, Thread::Mutex, Thread::Queue, Thread::SizedQueue, Thread::ConditionVariable, Method,
                 UnboundMethod, Binding, Enumerator, Fiber, Dir].freeze
        private_constant :NEVER

        # @param app [#call]
        def initialize(app)
          @app = app
          @seen = {}.compare_by_identity
          @culprits = []
        end

        # @return [#call] the application; it and every object that it refers to are frozen
        # @raise [BootError]
        def share
          walk(@app, "the application")
          refuse(@culprits.uniq) if @culprits.any?
          Ractor.make_shareable(@app)
        rescue BootError
          raise
        rescue StandardError => e # `freeze` of an application's or an extension's class may raise any error
          refuse(["the application (#{@app.class}): #{reason(e)}"])
        end

        private

        def refuse(culprits)
          raise BootError, "mode ractor: Ractors can't share this application.\n" \
                           "#{culprits.map { |line| "  #{line}.\n" }.join}" \
                           "Requests may use objects that they create themselves, or that are deeply frozen. " \
                           "Replace an application or middleware that is a block by an instance of a class with a " \
                           "method `call` (docs/modes.md). Mode fiber serves the application as it is"
        end

        def walk(object, place)
          return if Ractor.shareable?(object) || @seen[object]

          @seen[object] = true
          case object
          when Proc then return check_block(object, place)
          when *NEVER then @culprits << "#{place} is of the class #{object.class}, which only one Ractor can use"
          when Array, Set then object.each_with_index { |one, index| walk(one, "#{place}[#{index}]") }
          when Hash then object.each { |key, value| walk([key, value], "#{place}[#{key.inspect[0, 40]}]") }
          when Struct, Data then object.to_h.each { |name, value| walk(value, "#{place}.#{name}") }
          end
          object.instance_variables.each do |name|
            walk(object.instance_variable_get(name), "#{name} of #{object.class}")
          end
        end

        def check_block(block, place)
          Ractor.make_shareable(block)
        rescue StandardError => e # Ruby raises an ArgumentError or a RuntimeError for some blocks
          @culprits << "#{place} is a block#{" (#{block.source_location.join(":")})" if block.source_location}, and " \
                       "Ruby can't share it (#{reason(e)})"
        end

        # Removes the inspected object from the message, because it may be long.
        def reason(error) = error.message.sub(/:? #<.*/m, "")
      end
    end
  end
end
