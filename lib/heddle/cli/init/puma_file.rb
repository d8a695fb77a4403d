# frozen_string_literal: true

require "prism"

module Heddle
  module CLI
    class InitCommand
      # A configuration file of Puma: its calls, in the order of the file. Their arguments and conditions are evaluated
      # after the file has run ({PumaRun}).
      class PumaFile
        # One call of a setting.
        #
        # @!attribute name [Symbol]
        # @!attribute line [Integer]
        # @!attribute source [String] the first line of the call
        # @!attribute values [Array, nil] the values of its arguments; nil if they are unknown
        # @!attribute arguments [String] the source text of its arguments
        # @!attribute computed [Boolean] whether its first argument is neither a literal nor an environment variable
        #   with an optional default
        # @!attribute expression [String, nil] the source text of its first argument, if that is an environment variable
        #   with an optional default, and Heddle does not read the variable itself. Without a default, `ENV["A"]`
        #   becomes `ENV["A"] if ENV["A"]`
        # @!attribute processors [Boolean] whether its arguments seem to contain the number of processors, without
        #   arithmetic
        # @!attribute unset [Array<String>] environment variables that its arguments read without a default, and that
        #   are not set
        # @!attribute conditions [Array<String>, nil] the conditions under which it runs; nil if it is in a loop or a
        #   method, for example
        # @!attribute reached [Boolean] whether all conditions are true; also true if `conditions` is nil
        # @!attribute block [String, nil] the text of its block
        # @!attribute needs [Array<String>] names that its block uses, but that Heddle's file does not define
        Call = Data.define(:name, :line, :source, :values, :arguments, :computed, :expression, :processors, :unset,
                           :conditions, :reached, :block, :needs)

        # Matches `ENV["A"]`, `ENV["A"] || 2`, `ENV.fetch("A", 2)`, `ENV.fetch("A") { 2 }`, and each of them inside
        # `Integer(…)`.
        FROM_ENVIRONMENT = %r{\A(?:Integer\(|\()?\s*ENV(?:\[[^\]]+\](?:\s*\|\|\s*[\w"'./]+)?|
                              \.fetch\(?\s*["']\w+["'](?:,\s*[\w"'./]+)?\)?(?:\s*\{\s*[\w"'./]+\s*\})?)\s*\)?\z}x
        # Environment variables that Heddle reads itself. Two kinds are left out: variables that set the environment,
        # because conditions in the file depend on them, and RAILS_MAX_THREADS, because Heddle reads it only in mode
        # thread.
        OWN_VARIABLES = (Options.variables - Options::BY_NAME.fetch(:environment).variables -
                         ["RAILS_MAX_THREADS"]).freeze
        PROCESSORS = /nproc|processor|cpu/i
        ARITHMETIC = %r{[*/+%?]|\s-\s|\.\s*(?:min|max|clamp|fdiv|div|pred|succ)\b}
        PUMAS = /(?:\A|::)Puma\w*\z/
        VARIABLE = /\bENV(?:\[|\.fetch\()\s*["'](\w+)["']\s*[\])](?!\s*(?:\|\||\{|do\b))/
        # Nodes whose children are statements.
        GROUPS = [Prism::ProgramNode, Prism::StatementsNode, Prism::BeginNode, Prism::ParenthesesNode, Prism::ElseNode,
                  Prism::BlockNode].freeze
        LOADS = %i[require require_relative].freeze
        private_constant :FROM_ENVIRONMENT, :OWN_VARIABLES, :PROCESSORS, :ARITHMETIC, :PUMAS, :VARIABLE, :GROUPS,
                         :LOADS

        # @return [String] the path as the user gave it
        attr_reader :name

        # @return [Array<Call>]
        attr_reader :calls

        # @return [Array<PumaStatement>] the statements that are not settings
        attr_reader :others

        # @param path [String]
        # @raise [UsageError] if the file does not exist, or has a syntax error
        def initialize(path)
          @name = path
          unless File.file?(path)
            raise UsageError, "the file #{path} does not exist: --from must be the path of Puma's configuration file"
          end

          @source = File.read(path, encoding: Encoding::UTF_8)
          @tree = SyntaxTree.parse(path, @source)
          @run = run
          @calls = []
          @others = []
          collect(@tree.value)
        end

        # @return [Array<PumaRun::Failure>] the failed statements because of which settings may be missing or wrong
        def failures
          @run.failures.reject do |failure|
            (failure.application? || failure.missing_constant?) && SyntaxTree.assigned(failure.node).empty? &&
              settings(failure.node).empty?
          end
        end

        private

        # Runs the file without the environment variables that Heddle reads itself, to get the file's own defaults, and
        # again with these variables. Returns the first run, unless fewer statements fail in the second.
        def run
          path = File.expand_path(@name)
          runs = [OWN_VARIABLES & ENV.keys, []].uniq.map { |without| PumaRun.new(path, @tree, without:) }
          runs.min_by { |one| one.failures.size }
        end

        def collect(node, conditions = [])
          return if SyntaxTree::WRITES.include?(node.class)
          return node.compact_child_nodes.each { |child| collect(child, conditions) } if GROUPS.include?(node.class)

          found = settings(node)
          if found.empty? then @others << other(node, conditions)
          elsif !found.first.equal?(node) then collect_inner(node, found, conditions)
          elsif node.name == :cluster then collect(node.block, conditions)
          else @calls << call(node, conditions)
          end
        end

        def collect_inner(node, found, conditions)
          case node
          when Prism::IfNode, Prism::UnlessNode
            SyntaxTree.branches(node).each { |child, test| collect(child, [*conditions, test]) }
          else found.each { |one| @calls << call(one, nil) }
          end
        end

        # @return [Array<Prism::CallNode>] the settings in a node
        def settings(node)
          SyntaxTree.nodes(node).grep(Prism::CallNode).select do |one|
            (one.receiver.nil? || one.receiver.is_a?(Prism::SelfNode)) &&
              (PumaSettings::NAMES.include?(one.name) || @run.unknown.include?(one.name))
          end
        end

        def source_of(node) = PrintableText.utf8(@source.lines[node.location.start_line - 1]).strip

        def other(node, conditions)
          PumaStatement.new(line: node.location.start_line, source: source_of(node), text: node.slice, conditions:,
                            library: node.is_a?(Prism::CallNode) && node.receiver.nil? && LOADS.include?(node.name),
                            failure: @run.failures.find { |failure| failure.node.equal?(node) })
        end

        def call(node, conditions)
          block = node.block if node.block.is_a?(Prism::BlockNode)
          text = text_with_variables(node)
          argument = first_argument(node)
          Call.new(name: node.name, line: node.location.start_line, source: source_of(node), values: values(node),
                   arguments: node.arguments&.slice.to_s, computed: argument && computed?(argument),
                   expression: argument && expression(argument),
                   processors: PROCESSORS.match?(text) && !ARITHMETIC.match?(text),
                   unset: text.scan(VARIABLE).flatten.reject { |name| ENV.key?(name) }, conditions:,
                   reached: conditions.to_a.all? { |test| @run.evaluate(test) },
                   block: block&.slice, needs: block ? needs(block, block.locals) : [])
        end

        def values(node)
          return [] unless node.arguments

          @run.evaluate("[#{node.arguments.slice}]") unless @run.unset.intersect?(reads(node.arguments))
        end

        # @return [Array<Symbol>] the local variables that this node reads
        def reads(node) = SyntaxTree.nodes(node).grep(Prism::LocalVariableReadNode).map(&:name)

        # @return [String] the source text of a call's arguments, and of the expressions assigned to their variables
        def text_with_variables(node)
          return "" unless node.arguments

          [node.arguments, *assigned_values(reads(node.arguments))].map(&:slice).join(" ")
        end

        # @return [Array<Prism::Node>] the values that the file assigns to these variables
        def assigned_values(names)
          writes = SyntaxTree.nodes(@tree.value).grep(Prism::LocalVariableWriteNode)
          writes.select { |write| names.include?(write.name) }.map(&:value)
        end

        # @return [Prism::Node, nil] the call's first argument or, if that is a variable, the value assigned to it
        def first_argument(node)
          argument = node.arguments&.arguments&.first
          argument.is_a?(Prism::LocalVariableReadNode) ? assigned_values([argument.name]).first || argument : argument
        end

        def computed?(argument) = !literal?(argument) && !FROM_ENVIRONMENT.match?(argument.slice)

        def expression(argument)
          text = argument.slice
          return if needs(argument, []).any? || OWN_VARIABLES.intersect?(text.scan(/\w+/))

          text[FROM_ENVIRONMENT]&.sub(/\A.*\]\z/, '\0 if \0') # Puma accepts nil as a value, Heddle does not
        end

        def literal?(node)
          case node
          when Prism::StringNode, Prism::SymbolNode, Prism::IntegerNode, Prism::FloatNode, Prism::TrueNode,
               Prism::FalseNode, Prism::NilNode then true
          else false
          end
        end

        # @param own [Array<Symbol>] the local variables that the node defines itself
        # @return [Array<String>] the variables, methods and constants of the file that the node uses, and constants of
        #   Puma and of gems such as PumaWorkerKiller
        def needs(node, own)
          outer = @tree.value.locals - own
          found = SyntaxTree.nodes(node).select do |one|
            case one
            when Prism::LocalVariableReadNode, Prism::LocalVariableWriteNode then outer.include?(one.name)
            when Prism::InstanceVariableReadNode then defined_names.include?(one.name)
            when Prism::CallNode then one.receiver.nil? && defined_names.include?(one.name)
            when Prism::ConstantReadNode then defined_names.include?(one.name) || PUMAS.match?(one.slice)
            when Prism::ConstantPathNode then PUMAS.match?(one.slice)
            end
          end
          found.map { |one| one.is_a?(Prism::ConstantPathNode) ? one.slice : one.name.to_s }.uniq
        end

        # @return [Array<Symbol>] the methods, constants and instance variables that the file defines
        def defined_names
          @defined_names ||= @tree.value.statements.body.filter_map do |one|
            case one
            when Prism::DefNode, Prism::ClassNode, Prism::ModuleNode, Prism::ConstantWriteNode,
                 Prism::InstanceVariableWriteNode then one.name
            end
          end
        end
      end
    end
  end
end
