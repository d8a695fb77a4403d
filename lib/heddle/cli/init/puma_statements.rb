# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # The statements of a Puma configuration file that are not settings: Ruby code that Puma runs once when it starts.
      # They are not translated, so each line is reported, with advice.
      class PumaStatements
        # @!attribute line [Integer]
        # @!attribute source [String] its first line
        # @!attribute reason [String] why it is not translated, and where it belongs
        # @!attribute library [String, nil] the statement, if it loads a library
        # @!attribute conditions [Array<String>] under which it runs
        Statement = Data.define(:line, :source, :reason, :library, :conditions)

        WRITES = [Prism::LocalVariableWriteNode, Prism::LocalVariableOrWriteNode, Prism::LocalVariableAndWriteNode,
                  Prism::LocalVariableOperatorWriteNode, Prism::MultiWriteNode, Prism::ConstantWriteNode].freeze
        GROUPS = [Prism::ProgramNode, Prism::StatementsNode, Prism::BeginNode, Prism::ParenthesesNode,
                  Prism::ElseNode].freeze
        LOADS = %i[require require_relative].freeze
        private_constant :WRITES, :GROUPS, :LOADS

        class << self
          # @param failure [PumaRun::Failure]
          # @yieldparam node [Prism::CallNode]
          # @yieldreturn [Boolean] whether it is one of Puma's settings
          # @return [Boolean] whether it failed because the application is not loaded, and has no effect on a setting
          def harmless?(failure, &)
            (failure.application? || failure.missing_constant?) && assigned(failure.node).empty? &&
              !settings?(failure.node, &)
          end

          # @param node [Prism::Node]
          # @return [Array<Symbol>] variables that it sets
          def assigned(node)
            SyntaxTree.nodes(node).filter_map { |one| one.name if WRITES.include?(one.class) && one.respond_to?(:name) }
          end

          # @param node [Prism::Node]
          # @return [Boolean] whether one of Puma's settings is in it
          def settings?(node, &setting)
            SyntaxTree.nodes(node).grep(Prism::CallNode).any?(&setting)
          end
        end

        # @param tree [Prism::ParseResult]
        # @param source [String] the file
        # @param failures [Array<PumaRun::Failure>]
        # @yieldparam node [Prism::CallNode]
        # @yieldreturn [Boolean] whether it is one of Puma's settings
        def initialize(tree, source, failures, &setting)
          @lines = source.lines
          @failures = failures.to_h { |failure| [failure.node, failure] }
          @setting = setting
          @found = []
          visit(tree.value)
        end

        # @return [Array<Statement>] in the order of the file
        def to_a = @found

        private

        def visit(node, conditions = [])
          return if WRITES.include?(node.class)
          return node.compact_child_nodes.each { |child| visit(child, conditions) } if GROUPS.include?(node.class)
          return add(node, conditions) unless PumaStatements.settings?(node, &@setting)
          return unless [Prism::IfNode, Prism::UnlessNode].include?(node.class)

          SyntaxTree.branches(node).each { |child, test| visit(child, [*conditions, test]) }
        end

        def add(node, conditions)
          line = node.location.start_line
          library = node.slice if node.is_a?(Prism::CallNode) && node.receiver.nil? && LOADS.include?(node.name)
          library = nil if @failures[node]
          @found << Statement.new(line:, source: @lines[line - 1].strip, reason: reason(node), library:, conditions:)
        end

        def reason(node)
          failure = @failures[node]
          if failure
            return "not run: this line loads the application, which Heddle does itself" if failure.application?

            return "not run: #{failure.message}. Move it to an initializer or to worker_boot { }"
          end

          case node.slice
          when /\AENV\b/ then "set it in the environment of the server, or copy the line into the new file"
          when /\A(?:::)?(?:Signal\.)?trap\b/
            "not run: Heddle has its own handlers (docs/processes.md); set other handlers in worker_boot { }"
          when /\A(?:def|class|module)\b/ then "only Puma's file uses it"
          else "it is not a setting: move it to an initializer, or to a hook such as worker_boot { }"
          end
        end
      end
    end
  end
end
