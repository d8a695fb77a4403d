# frozen_string_literal: true

require "prism"

module Heddle
  module CLI
    class InitCommand
      # Parses Ruby code with Prism, and finds nodes in it.
      module SyntaxTree
        # The nodes of statements that only assign variables or constants.
        WRITES = [Prism::LocalVariableWriteNode, Prism::LocalVariableOrWriteNode, Prism::LocalVariableAndWriteNode,
                  Prism::LocalVariableOperatorWriteNode, Prism::MultiWriteNode, Prism::ConstantWriteNode].freeze

        # @param node [Prism::Node]
        # @return [Array<Prism::Node>] this node and all nodes below it, in the order of the text
        def self.nodes(node) = [node, *node.compact_child_nodes.flat_map { |child| nodes(child) }]

        # @param node [Prism::Node]
        # @return [Array<Symbol>] the variables and constants that the node assigns, without those of multiple
        #   assignments
        def self.assigned(node)
          nodes(node).filter_map { |one| one.name if WRITES.include?(one.class) && one.respond_to?(:name) }
        end

        # @param node [Prism::IfNode, Prism::UnlessNode]
        # @return [Hash{Prism::Node => String}] the branches, each with the condition under which it runs
        def self.branches(node)
          test = node.predicate.slice
          sides = [test, "!(#{test})"]
          sides.reverse! if node.is_a?(Prism::UnlessNode)
          # The name of the else branch differs between versions of Prism.
          otherwise = %i[subsequent else_clause consequent].find { |name| node.respond_to?(name) }
          [node.statements, node.public_send(otherwise)].zip(sides).to_h.except(nil)
        end

        # @param path [String] the path of the file, for the error message
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
