# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # Looks for nodes in Ruby code that Prism has parsed.
      module SyntaxTree
        # @param node [Prism::Node]
        # @return [Array<Prism::Node>] this one, and all those below it in the order of the text
        def self.nodes(node) = [node, *node.compact_child_nodes.flat_map { |child| nodes(child) }]

        # @param node [Prism::IfNode, Prism::UnlessNode]
        # @return [Prism::Node, nil] the else branch, whose name differs between versions of Prism
        def self.otherwise(node)
          node.public_send(%i[subsequent else_clause consequent].find { |name| node.respond_to?(name) })
        end

        # @param node [Prism::Node]
        # @return [Boolean] whether it has {branches}
        def self.branches?(node)
          [Prism::IfNode, Prism::UnlessNode, Prism::CaseNode].include?(node.class)
        end

        # @param node [Prism::IfNode, Prism::UnlessNode, Prism::CaseNode]
        # @return [Hash{Prism::Node => String}] its branches, with the conditions under which they run
        def self.branches(node)
          return cases(node) if node.is_a?(Prism::CaseNode)

          test = node.predicate.slice
          sides = [test, "!(#{test})"]
          sides.reverse! if node.is_a?(Prism::UnlessNode)
          [node.statements, otherwise(node)].zip(sides).to_h.except(nil)
        end

        # The first branch that holds runs.
        def self.cases(node)
          tests = node.conditions.map { |one| case_test(node.predicate, one.conditions) }
          found = node.conditions.each_with_index.to_h do |one, index|
            [one.statements, [*tests.take(index).map { |test| "!(#{test})" }, tests[index]].join(" && ")]
          end
          found[otherwise(node)] = tests.map { |test| "!(#{test})" }.join(" && ")
          found.except(nil)
        end
        private_class_method :cases

        def self.case_test(subject, values)
          list = "[#{values.map(&:slice).join(", ")}]"
          subject ? "#{list}.any? { |one| one === (#{subject.slice}) }" : "#{list}.any?"
        end
        private_class_method :case_test

        # @param path [String] of the code, for the message
        # @param text [String]
        # @return [Prism::ParseResult]
        # @raise [UsageError]
        def self.parse(path, text)
          require "prism"
          parsed = Prism.parse(text)
          error = parsed.errors.first or return parsed
          raise UsageError, "#{path}:#{error.location.start_line}: syntax error: #{error.message}"
        end
      end
    end
  end
end
