# frozen_string_literal: true

require "prism"

module Heddle
  module CLI
    class InitCommand
      # Looks for nodes in Ruby code that Prism has parsed.
      module SyntaxTree
        # Statements that only set variables.
        WRITES = [Prism::LocalVariableWriteNode, Prism::LocalVariableOrWriteNode, Prism::LocalVariableAndWriteNode,
                  Prism::LocalVariableOperatorWriteNode, Prism::MultiWriteNode, Prism::ConstantWriteNode].freeze

        # @param node [Prism::Node]
        # @return [Array<Prism::Node>] this one, and all those below it in the order of the text
        def self.nodes(node) = [node, *node.compact_child_nodes.flat_map { |child| nodes(child) }]

        # @param node [Prism::Node]
        # @return [Array<Symbol>] variables that it sets
        def self.assigned(node)
          nodes(node).filter_map { |one| one.name if WRITES.include?(one.class) && one.respond_to?(:name) }
        end

        # @param node [Prism::IfNode, Prism::UnlessNode]
        # @return [Hash{Prism::Node => String}] its branches, with the conditions under which they run
        def self.branches(node)
          test = node.predicate.slice
          sides = [test, "!(#{test})"]
          sides.reverse! if node.is_a?(Prism::UnlessNode)
          # The name of the else branch differs between versions of Prism.
          otherwise = %i[subsequent else_clause consequent].find { |name| node.respond_to?(name) }
          [node.statements, node.public_send(otherwise)].zip(sides).to_h.except(nil)
        end

        # @param path [String] of the code, for the message
        # @param text [String]
        # @return [Prism::ParseResult]
        # @raise [UsageError]
        def self.parse(path, text)
          parsed = Prism.parse(text)
          error = parsed.errors.first or return parsed
          raise UsageError, "#{path}:#{error.location.start_line}: syntax error: #{error.message}"
        end
      end
    end
  end
end
