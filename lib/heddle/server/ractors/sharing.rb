# frozen_string_literal: true

module Heddle
  class Server
    module Ractors
      # Makes an application one that all Ractors may use, or says what keeps it from being one, and where.
      class Sharing
        # As many are named; the others are counted.
        MOST = 20
        private_constant :MOST

        # @param app [#call]
        def initialize(app)
          @app = app
          @seen = {}.compare_by_identity
          @culprits = []
        end

        # @return [#call] the application, frozen with all that it refers to
        # @raise [BootError]
        def share
          walk(@app, "the application")
          freeze_all if @culprits.empty?
          refuse if @culprits.any?
          @app
        end

        private

        def freeze_all
          Ractor.make_shareable(@app)
        rescue StandardError => e # objects may have a `freeze` of their own
          blame(e)
        end

        # For objects that fail only when tried, such as those of extensions: finds the innermost one that can't be
        # shared.
        def blame(error)
          object, place = @seen.reverse_each.find { |one, _| !freezes?(one) }
          @culprits << (place ? alone(object, place) : "the application (#{@app.class}): #{reason(error)}")
        end

        def freezes?(object)
          Ractor.make_shareable(object)
          true
        rescue StandardError
          false
        end

        def refuse
          raise BootError, "mode ractor: Ractors can't share this application.\n" \
                           "#{listed(@culprits).map { |line| "  #{line}\n" }.join}" \
                           "Requests may use objects that they make themselves, or that are deeply frozen; see " \
                           "docs/modes.md. Mode fiber serves it as it is"
        end

        def listed(lines)
          lines = lines.uniq
          lines.size > MOST ? [*lines.first(MOST), "and #{lines.size - MOST} more"] : lines
        end

        def walk(object, place)
          return if Ractor.shareable?(object) || @seen[object]

          @seen[object] = place
          case object
          when Proc then look_at_proc(object, place)
          when Array then object.each_with_index { |one, index| walk(one, "#{place}[#{index}]") }
          when Hash then walk_hash(object, place)
          when Set then object.each { |one| walk(one, "an element of #{place}") } # has no variables since Ruby 4.0
          when Struct, Data then object.to_h.each { |name, value| walk(value, "#{place}.#{name}") }
          end
          walk_variables(object, place)
          look_at_kind(object, place) unless object.is_a?(Proc)
        end

        def walk_hash(hash, place)
          walk(hash.default_proc, "the default block of #{place}") if hash.default_proc
          hash.each do |key, value|
            walk(key, "a key of #{place}")
            walk(value, "#{place}[#{key.inspect[0, 40]}]")
          end
        end

        def walk_variables(object, place)
          object.instance_variables.each do |name|
            owner = "#{object.class}#{" (#{place})" if object.equal?(@app)}"
            walk(object.instance_variable_get(name), "#{name} of #{owner}")
          end
        end

        def look_at_proc(block, place)
          Ractor.make_shareable(block)
        rescue StandardError => e # Ruby raises an ArgumentError or a RuntimeError for some blocks
          file, line = block.source_location
          @culprits << "#{place} is a block#{" (#{file}:#{line})" if file}, and #{fault(e.message)}"
        end

        # @return [String] why Ruby does not share a block, and what to do
        def fault(message)
          instead = "write a class with a method `call`"
          if message.start_with?("Proc's self is not shareable")
            "its self is not shareable: #{instead}#{", or use Ractor.shareable_lambda" if SHAREABLE_LAMBDA}"
          elsif (name = message[/from variable [`'](.+)'\z/, 1])
            "its variable #{name} refers to an object that is not shareable: #{instead}"
          elsif (names = message[/outer variables \((.+)\)/, 1])
            "it assigns variables of its surroundings (#{names}): #{instead}"
          else
            "Ruby can't share it (#{message}): #{instead}"
          end
        end

        SHAREABLE_LAMBDA = Ractor.respond_to?(:shareable_lambda) # Ruby >= 4.0
        private_constant :SHAREABLE_LAMBDA

        def look_at_kind(object, place)
          @culprits << alone(object, place) if never_shared?(object)
        end

        def alone(object, place) = "#{place} is #{kind(object)}, which is one Ractor's alone"

        NEVER = [IO, Thread, Thread::Mutex, Thread::Queue, Thread::SizedQueue, Thread::ConditionVariable, Method,
                 UnboundMethod, Binding, Enumerator, Fiber, Dir].freeze
        private_constant :NEVER

        def never_shared?(object)
          NEVER.any? { |kind| object.is_a?(kind) } || (defined?(::Monitor) && object.is_a?(::Monitor))
        end

        def kind(value) = "#{/\A[AEIOU]/.match?(value.class.name.to_s) ? "an" : "a"} #{value.class}"

        def reason(error) = error.message.sub(/:? #<.*/m, "")
      end
    end
  end
end
