# frozen_string_literal: true

require "heddle"
require "heddle/async/reactor"
require "heddle/minitest"
require "heddle/net/dns"
require "heddle/net/tls/client_context"
require "heddle/offload"
require "active_support"
require "active_support/core_ext/hash/indifferent_access"
require "active_support/core_ext/string/inflections"
require "action_cable"
require "prism"
require "rbs"

# The public constants and methods of Heddle, as Ruby has them and as sig/ describes them.
module PublicApi
  ROOT = File.expand_path("../..", __dir__)

  # The constants that are marked in the comment above their definition:
  #
  # - `@api private`: it is internal, with all constants inside that sig/ does not show.
  # - `@api private except what sig/ declares`: so are its methods, and those of the constants inside.
  class PrivateMarks < Prism::Visitor
    MARK = %r{@api private(?<partly> except what sig/ declares)?\s*$}

    # @return [Hash{String => Boolean}] full names of the constants, and whether sig/ shows parts of it
    def self.all
      Dir[File.join(ROOT, "lib/**/*.rb")].map { |file| new(file).names }.reduce(:merge)
    end

    attr_reader :names

    def initialize(file)
      super()
      @path = []
      @names = {}
      result = Prism.parse_file(file)
      @marks = marks(result.comments)
      result.value.accept(self)
    end

    def visit_module_node(node) = enter(node) { super }
    def visit_class_node(node) = enter(node) { super }
    def visit_constant_write_node(node) = enter(node, node.name.to_s) { super }

    private

    def enter(node, name = node.constant_path.slice)
      @path << name
      mark = @marks[node.location.start_line - 1]
      @names[@path.join("::")] = !mark[:partly].nil? if mark
      yield
      @path.pop
    end

    # @return [Hash{Integer => MatchData}] by the last line of the comment
    def marks(comments)
      blocks = comments.slice_when { |one, other| other.location.start_line != one.location.start_line + 1 }
      blocks.to_h { |block| [block.last.location.start_line, block.filter_map { |one| MARK.match(one.slice) }.first] }
    end
  end

  # What sig/ declares.
  class Signatures
    Entry = Struct.new(:instance, :singleton, :constants, :superclass)

    # @return [Hash{String => Entry}] by the name of a class or module
    attr_reader :modules

    def initialize
      @modules = Hash.new { |hash, name| hash[name] = Entry.new(Set.new, Set.new, Set.new) }
      Dir[File.join(ROOT, "sig/**/*.rbs")].each do |file|
        _, _, declarations = RBS::Parser.parse_signature(RBS::Buffer.new(name: file, content: File.read(file)))
        read(declarations, [])
      end
    end

    private

    def read(members, path)
      members.each do |member|
        case member
        when RBS::AST::Declarations::Class, RBS::AST::Declarations::Module then read_module(member, path)
        when RBS::AST::Declarations::Constant, RBS::AST::Declarations::ClassAlias then constant(path, name_of(member))
        when RBS::AST::Members::MethodDefinition, RBS::AST::Members::Alias then add(path, member.kind, name_of(member))
        when RBS::AST::Members::AttrReader then add(path, member.kind, member.name)
        when RBS::AST::Members::AttrWriter then add(path, member.kind, :"#{member.name}=")
        when RBS::AST::Members::AttrAccessor
          add(path, member.kind, member.name)
          add(path, member.kind, :"#{member.name}=")
        end
      end
    end

    def name_of(member) = member.respond_to?(:new_name) && !member.respond_to?(:name) ? member.new_name : member.name

    def read_module(declaration, path)
      constant(path, declaration.name)
      path += declaration.name.to_s.delete_prefix("::").split("::")
      @modules[path.join("::")]
      read(declaration.members, path)
    end

    def constant(path, name) = (@modules[path.join("::")].constants << name.to_s.to_sym unless path.empty?)

    def add(path, kind, name)
      entry = @modules[path.join("::")]
      entry.instance << name unless kind == :singleton
      entry.singleton << name unless kind == :instance
    end
  end

  # What Ruby has: the modules and classes under Heddle that are public or in sig/.
  class Runtime
    # @return [Hash{String => Module}]
    attr_reader :modules
    # @return [Array<String>] names of public constants that sig/ does not show
    attr_reader :missing

    # @param marks [Hash{String => Boolean}] see {PrivateMarks.all}
    # @param signatures [Signatures]
    def initialize(marks, signatures)
      @marks = marks
      @signatures = signatures
      @modules = {}
      @missing = []
      walk(Heddle, "Heddle")
    end

    # @return [Array<Array(String, Module)>] those of which everything is in sig/
    def sealed = @modules.reject { |path, _| @marks.any? { |mark, partly| partly && inside?(path, mark) } }

    private

    # What is in sig/ is public, also inside of a private module.
    def walk(mod, path)
      @modules[path] = mod
      shown = @signatures.modules[path].constants
      internal = @marks.any? { |mark, partly| mark == path || (partly && inside?(path, mark)) }
      mod.constants(false).each do |name|
        child = "#{path}::#{name}"
        if shown.include?(name)
          walk(mod.const_get(name), child) if @signatures.modules.key?(child)
        elsif !internal && !@marks.include?(child) && !of_tests?(mod, name) then @missing << child
        end
      end
    end

    def inside?(path, mark) = path == mark || path.start_with?("#{mark}::")

    def of_tests?(mod, name) = mod.const_source_location(name)&.first&.start_with?(File.join(ROOT, "test/"))
  end

  SIGNATURES = Signatures.new
  RUNTIME = Runtime.new(PrivateMarks.all, SIGNATURES)
end
