# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # Runs Puma's configuration file statement by statement, so that the statements after a failed one run, too. Puma
      # and the application are not loaded. The environment variables are restored afterwards.
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

            # The message may have any encoding; PrintableText converts it to UTF-8.
            text = PrintableText.lines(ErrorText.message(error))[/\A.*/]
            text = text.gsub(/(?:#{PumaScope}|#<Class:#<#{PumaScope}.*?>>)::/, "")
            "#{ErrorText.class_name(error)}: #{text}"
          end

          # @return [Boolean] whether the statement failed because it tried to load the application
          def application? = error.is_a?(ApplicationGuard::Refused)

          # @return [Boolean] whether the statement failed because of a missing constant, which is probably the
          #   application's
          def missing_constant? = error.instance_of?(NameError) && error.name.to_s.match?(/\A\p{Upper}/)
        end

        # Matches calls that change this process or start other processes. They are never settings, and are not run.
        NEVER_RUN = /\A(?:::)?(?:Signal\.trap|trap|at_exit|fork|exec|system|spawn|(?:Thread|Process|Kernel)\.\w+)\b/
        private_constant :NEVER_RUN

        # @return [Array<Failure>]
        attr_reader :failures

        # @param path [String] the absolute path of the file
        # @param tree [Prism::ParseResult]
        # @param without [Array<String>] environment variables that the file does not see
        def initialize(path, tree, without: [])
          @path = path
          @failures = []
          @scope = PumaScope.new
          @binding = @scope.__binding__
          with_environment(ENV.to_h.except(*without)) do
            tree.value.statements.body.each { |node| run(node) }
            @environment = ENV.to_h
          end
          @scope.finish
        end

        # @return [Array<Symbol>] names of the methods that the file has called and that are not settings of Puma
        def unknown = @scope.unknown

        # @return [Array<Symbol>] local variables that are not set, because the statements that assign them failed
        def unset = @unset ||= failures.flat_map { |failure| SyntaxTree.assigned(failure.node) }

        # @param text [String] an expression of the file
        # @return [Object, nil] its value at the end of the file; nil if it can't be computed
        def evaluate(text)
          return if NEVER_RUN.match?(text)

          with_environment(@environment) { ApplicationGuard.during { @binding.eval(text, @path) } }
        rescue SignalException, NoMemoryError
          raise
        rescue Exception
          nil
        end

        private

        def with_environment(variables)
          before = ENV.to_h
          ENV.replace(variables)
          yield
        ensure
          ENV.replace(before)
        end

        def run(node)
          return if node.is_a?(Prism::CallNode) && NEVER_RUN.match?(node.slice)

          ApplicationGuard.during { @binding.eval(node.slice, @path, node.location.start_line) }
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
