# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # One run of Puma's configuration file, statement by statement, so that a failing statement does not hide those
      # after it. Neither Puma nor the application is loaded; the environment is restored afterwards.
      class PumaRun
        # A statement that failed.
        #
        # @!attribute node [Prism::Node]
        # @!attribute line [Integer]
        # @!attribute error [Exception]
        Failure = Data.define(:node, :line, :error) do
          # @return [String]
          def message
            return "the file ends the program here, with status #{error.status}" if error.is_a?(SystemExit)

            # The message may be in any encoding; PrintableText makes it UTF-8.
            text = PrintableText.lines(ErrorText.message(error))[/\A.*/]
            text = text.gsub(/(?:#{PumaRecorder}|#<Class:#<#{PumaRecorder}.*?>>)::/, "")
            "#{ErrorText.class_name(error)}: #{text}"
          end

          # @return [Boolean] whether it would have loaded the application
          def application? = error.is_a?(ApplicationGuard::Refused)

          # @return [Boolean] whether a constant is missing, most likely one of the application's
          def missing_constant? = error.instance_of?(NameError) && error.name.to_s.match?(/\A\p{Upper}/)
        end

        # Matches calls that change this process or start others. They can't be settings.
        NEVER_RUN = /\A(?:::)?(?:Signal\.trap|trap|at_exit|fork|exec|system|spawn|(?:Thread|Process|Kernel)\.\w+)\b/
        private_constant :NEVER_RUN

        # @return [Array<PumaRecorder::Record>] calls, in the order in which they ran
        attr_reader :records

        # @return [Array<Failure>]
        attr_reader :failures

        # @return [Array<Symbol>] variables that the failed statements would have set
        def unset = @unset ||= failures.flat_map { |failure| PumaStatements.assigned(failure.node) }

        # @param path [String] the file's, absolute
        # @param tree [Prism::ParseResult]
        # @param without [Array<String>] environment variables that this run does not see
        def initialize(path, tree, without: [])
          @path = path
          @failures = []
          recorder = PumaRecorder.new(path)
          @records = recorder.records
          @scope = recorder.__binding__
          @without = without
          in_its_environment { tree.value.statements.body.each { |node| run(node) } }
        end

        # @param arguments [Prism::ArgumentsNode] of a call that did not run, because its condition did not hold
        # @return [Array, nil] their values; nil: they can't be computed
        def evaluate(arguments)
          return if NEVER_RUN.match?(arguments.slice)

          list = "[#{arguments.slice}]"
          in_its_environment { ApplicationGuard.during { @scope.eval(list, @path) } }
        rescue SignalException, NoMemoryError
          raise
        rescue Exception
          nil
        end

        private

        def in_its_environment
          environment = ENV.to_h
          @without.each { |name| ENV.delete(name) }
          yield
        ensure
          ENV.replace(environment)
        end

        def run(node)
          return if node.is_a?(Prism::CallNode) && NEVER_RUN.match?(node.slice)

          ApplicationGuard.during { @scope.eval(node.slice, @path, node.location.start_line) }
        rescue SignalException, NoMemoryError
          raise
        rescue Exception => e
          line = e.backtrace_locations&.find { |location| location.path == @path }&.lineno
          @failures << Failure.new(node:, line: line || node.location.start_line, error: e)
        end
      end
    end
  end
end
