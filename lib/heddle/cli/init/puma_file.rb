# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # A configuration file of Puma's: its calls, in the order of the file, with the values that they had when it was
      # run ({PumaRun}). Statements that did not run, because a condition did not hold, are read from the text.
      class PumaFile
        # One call.
        #
        # @!attribute name [Symbol]
        # @!attribute line [Integer]
        # @!attribute source [String] its first line
        # @!attribute values [Array, nil] of its arguments; nil when they are unknown
        # @!attribute arguments [String] its arguments' text
        # @!attribute computed [Boolean] whether its first argument is neither a literal nor the default of a variable
        # @!attribute conditions [Array<String>, nil] under which it runs; nil: one line can't express them
        # @!attribute machine [Symbol, nil] :processors: its first argument is the number of processors; :computed: it
        #   depends on that number
        # @!attribute unset [Array<String>] environment variables without a default that its arguments read and that are
        #   not set
        # @!attribute reached [Boolean] whether it ran
        # @!attribute block [String, nil] the text of its block
        # @!attribute needs [Array<String>] names that its block uses and Heddle's file does not define
        # @!attribute variables [Array<Symbol>] {#shared_variables} that its block uses
        Call = Data.define(:name, :line, :source, :values, :arguments, :computed, :machine, :unset, :conditions,
                           :reached, :block, :needs, :variables)

        # `ENV["A"]`, `ENV["A"] || 2`, `ENV.fetch("A", 2)`, `ENV.fetch("A") { 2 }`, `Integer(…)` of them.
        FROM_ENVIRONMENT = %r{\A(?:Integer\(|\()?\s*ENV(?:\[[^\]]+\](?:\s*\|\|\s*[\w"'./]+)?|
                              \.fetch\(?\s*["']\w+["'](?:,\s*[\w"'./]+)?\)?(?:\s*\{\s*[\w"'./]+\s*\})?)\s*\)?\z}x
        # Environment variables that Heddle reads itself, without two kinds: those that name the environment, because
        # conditions in the file depend on them, and RAILS_MAX_THREADS, because Heddle reads it only in mode thread.
        OWN_VARIABLES = (Options.variables - Options::BY_NAME.fetch(:environment).variables -
                         ["RAILS_MAX_THREADS"]).freeze
        PROCESSORS = /nproc|processor|cpu/i
        ARITHMETIC = %r{[*/+%?]|\s-\s|\.\s*(?:min|max|clamp|fdiv|div|pred|succ)\b}
        PUMAS = /(?:\A|::)Puma\w*\z/
        VARIABLE = /\bENV\[\s*["'](\w+)["']\s*\](?!\s*\|\|)/
        private_constant :FROM_ENVIRONMENT, :OWN_VARIABLES, :PROCESSORS, :ARITHMETIC, :PUMAS, :VARIABLE

        # @return [String] the path as the user gave it
        attr_reader :name

        # @param path [String]
        # @raise [UsageError] when there is no such file, or it is not Ruby
        def initialize(path)
          @name = path
          raise UsageError, "there is no file #{path}: name Puma's configuration file" unless File.file?(path)

          @source = File.read(path, encoding: Encoding::UTF_8)
          @tree = SyntaxTree.parse(path, @source)
          run
        end

        # @return [Array<PumaRun::Failure>] statements that could not be run, so that their settings are missing
        attr_reader :failures

        # @return [Array<PumaStatements::Statement>] the file's statements other than settings
        def statements = PumaStatements.new(@tree, @source, @run.failures) { |node| setting?(node) }.to_a

        # Variables that blocks can share in the new file, too: `server = nil` before a block that starts it and one
        # that stops it.
        # @return [Hash{Symbol => PumaStatements::Statement}]
        def shared_variables
          @shared_variables ||= begin
            writes = @tree.value.statements.body.grep(Prism::LocalVariableWriteNode).group_by(&:name)
            found = writes.values.select { |all| all.one? && literal?(all.first.value) }.map(&:first)
            found.reject { |write| Options::BY_NAME.key?(write.name) }.to_h { |write| [write.name, statement(write)] }
          end
        end

        # @return [Array<Call>]
        def calls
          @calls ||= [].tap { |found| walk(@tree.value, [], found) }
        end

        private

        # Runs the file with the environment as it is, which the file may need. If variables are set that Heddle reads
        # itself, runs it once more without them, to get the file's own defaults.
        def run
          path = File.expand_path(@name)
          @run = @defaults = PumaRun.new(path, @tree)
          set = OWN_VARIABLES.select { |name| ENV.key?(name) }
          @defaults = PumaRun.new(path, @tree, without: set) if set.any?
          @failures = @run.failures.reject do |failure|
            PumaStatements.harmless?(failure) { |node| setting?(node) }
          end
        end

        def statement(write)
          PumaStatements::Statement.new(line: write.location.start_line, source: write.slice, reason: nil,
                                        library: nil, conditions: [])
        end

        def walk(node, conditions, found)
          case node
          when Prism::IfNode, Prism::UnlessNode, Prism::CaseNode then walk_branches(node, conditions, found)
          when Prism::CallNode
            return found.concat(calls_of(node, conditions)) if setting?(node) && node.name != :cluster

            children(node, node.block && node.name != :cluster ? nil : conditions, found)
          when Prism::ProgramNode, Prism::StatementsNode, Prism::BeginNode, Prism::ParenthesesNode, Prism::ElseNode,
               Prism::BlockNode
            children(node, conditions, found)
          else children(node, nil, found)
          end
        end

        def children(node, conditions, found)
          node.compact_child_nodes.each { |child| walk(child, conditions, found) }
        end

        def walk_branches(node, conditions, found)
          SyntaxTree.branches(node).each { |child, test| walk(child, conditions && [*conditions, test], found) }
        end

        # A call in a loop has run several times, with different values.
        def calls_of(node, conditions)
          one = call(node, conditions)
          runs = records(@run, node, lines_of(node)).map(&:values).uniq
          conditions || runs.size < 2 ? [one] : runs.map { |values| one.with(values:) }
        end

        def lines_of(node) = node.location.start_line..node.location.end_line

        def setting?(node)
          return false unless node.receiver.nil? || node.receiver.is_a?(Prism::SelfNode)

          PumaSettings::NAMES.include?(node.name) || @run.records.any? { |record| record.name == node.name }
        end

        def call(node, conditions)
          lines = lines_of(node)
          ran = records(@run, node, lines)
          block = node.block if node.block.is_a?(Prism::BlockNode)
          text = text_with_variables(node.arguments)
          Call.new(name: node.name, line: lines.begin, source: @source.lines[lines.begin - 1].strip,
                   values: values(node, lines), arguments: node.arguments&.slice.to_s,
                   computed: computed(node), machine: machine(text),
                   unset: text.scan(VARIABLE).flatten.reject { |name| ENV.key?(name) }, conditions:,
                   reached: ran.any?, block: block&.slice, needs: block ? needs(block, block.locals) : [],
                   variables: block ? variables(block) : [])
        end

        def variables(block)
          found = SyntaxTree.nodes(block).select do |one|
            one.is_a?(Prism::LocalVariableReadNode) || one.is_a?(Prism::LocalVariableWriteNode)
          end
          found.map(&:name).uniq & shared_variables.keys - block.locals
        end

        def values(node, lines)
          names = node.arguments ? reads(node.arguments) : []
          runs = [@defaults, @run].reject { |run| run.unset.intersect?(names) }
          ran = runs.filter_map { |run| records(run, node, lines).last }.first
          return ran.values if ran

          return if runs.empty?

          node.arguments ? runs.first.evaluate(node.arguments) : []
        end

        # @return [Array<PumaRecorder::Record>] of this call; other calls in its line have other values
        def records(run, node, lines)
          found = run.records.select { |record| record.name == node.name && lines.cover?(record.line) }
          others = SyntaxTree.nodes(@tree.value).grep(Prism::CallNode).select { |one| one.name == node.name } - [node]
          return found if others.none? { |one| lines.cover?(one.location.start_line) }

          values = node.arguments ? run.evaluate(node.arguments) : []
          found.select { |record| record.values == values }
        end

        # @return [Array<Symbol>] the file's variables that this node reads
        def reads(node) = SyntaxTree.nodes(node).grep(Prism::LocalVariableReadNode).map(&:name)

        # @return [String] the text of an expression, and of the expressions that set its variables
        def text_with_variables(node, seen = [])
          return "" unless node

          names = reads(node) - seen
          [node.slice, *assigned_values(names).map { |value| text_with_variables(value, seen + names) }].join(" ")
        end

        # @return [Array<Prism::Node>] what the file sets these variables to
        def assigned_values(names)
          writes = SyntaxTree.nodes(@tree.value).grep(Prism::LocalVariableWriteNode)
          writes.select { |write| names.include?(write.name) }.map(&:value)
        end

        def machine(text)
          return unless PROCESSORS.match?(text)

          ARITHMETIC.match?(text) ? :computed : :processors
        end

        def computed(node)
          argument = node.arguments&.arguments&.first or return false
          argument = assigned_values([argument.name]).first || argument if argument.is_a?(Prism::LocalVariableReadNode)
          !literal?(argument) && !FROM_ENVIRONMENT.match?(argument.slice)
        end

        def literal?(node)
          case node
          when Prism::StringNode, Prism::SymbolNode, Prism::IntegerNode, Prism::FloatNode, Prism::TrueNode,
               Prism::FalseNode, Prism::NilNode then true
          else false
          end
        end

        # @param own [Array<Symbol>] local variables of the node
        # @return [Array<String>] the file's variables, methods and constants that the node uses, and constants of Puma
        #   and its companions
        def needs(node, own)
          outer = @tree.value.locals - own
          found = SyntaxTree.nodes(node).select do |one|
            case one
            when Prism::LocalVariableReadNode then outer.include?(one.name) && !shared_variables.key?(one.name)
            when Prism::InstanceVariableReadNode then defined_names.include?(one.name)
            when Prism::CallNode then one.receiver.nil? && defined_names.include?(one.name)
            when Prism::ConstantReadNode then defined_names.include?(one.name) || PUMAS.match?(one.slice)
            when Prism::ConstantPathNode then PUMAS.match?(one.slice)
            end
          end
          found.map { |one| one.is_a?(Prism::ConstantPathNode) ? one.slice : one.name.to_s }.uniq
        end

        # @return [Array<Symbol>] methods, constants and instance variables that the file defines
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
