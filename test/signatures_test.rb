# frozen_string_literal: true

require "test_helper"
require "support/public_api"

# The signatures in sig/ are valid, and declare only what exists.
class SignaturesTest < Minitest::Test
  def test_signatures_are_valid
    environment.class_decls.each_key.select { |name| heddle?(name) }.each do |name|
      builder.build_instance(name) if class?(name)
      builder.build_singleton(name)
    end
  end

  def test_every_signature_belongs_to_a_method_that_takes_these_arguments
    checked = 0
    PublicApi::RUNTIME.modules.each_value do |type|
      own_methods(type).each do |name, method, overloads|
        assert method, "#{type} has no method #{name}"
        overloads.each { |function| assert_fits(type, name, method, function) }
        checked += 1
      end
    end

    assert_operator checked, :>, 300
  end

  private

  def environment
    @environment ||= begin
      loader = RBS::EnvironmentLoader.new
      %w[socket timeout].each { |library| loader.add(library:) }
      loader.add(path: Pathname(File.join(ROOT, "sig")))
      RBS::Environment.from_loader(loader).resolve_type_names
    end
  end

  def builder = @builder ||= RBS::DefinitionBuilder.new(env: environment)

  def heddle?(name) = name.to_s.start_with?("::Heddle")

  def class?(name) = environment.class_decls[name].is_a?(RBS::Environment::ClassEntry)

  def type_name(type) = RBS::TypeName.parse("::#{type}")

  # The methods that the signatures give to the type itself: name, Method or nil, and their functions.
  def own_methods(type)
    sides = [[builder.build_singleton(type_name(type)), ->(name) { type.method(name) }]]
    sides << [builder.build_instance(type_name(type)), ->(name) { type.instance_method(name) }] if type.is_a?(Class)
    sides.flat_map do |definition, finder|
      own = definition.methods.select { |name, one| one.defined_in == type_name(type) && name != :new }
      own.map { |name, one| [name, find(finder, name), one.method_types.map(&:type)] }
    end
  end

  def find(finder, name)
    finder.call(name)
  rescue NameError
    nil
  end

  # Methods in C tell only how many arguments they take, if that.
  def assert_fits(type, name, method, function)
    required = function.required_positionals.size
    most = required + function.optional_positionals.size
    low, high = arity_range(method)
    assert_operator low, :<=, required, "#{type}##{name} needs more arguments than its signature says"
    assert_operator high, :>=, most, "#{type}##{name} takes fewer arguments than its signature says"
    keywords = function.required_keywords.keys + function.optional_keywords.keys
    known = method.parameters.filter_map { |kind, key| key if %i[key keyreq].include?(kind) }
    assert_empty keywords - known, "#{type}##{name}" unless takes_any_keyword?(method)
  end

  def takes_any_keyword?(method)
    method.parameters == [[:rest]] || method.parameters.any? { |kind, _| kind == :keyrest }
  end

  def arity_range(method)
    kinds = method.parameters.map(&:first)
    return [0, Float::INFINITY] if kinds.include?(:rest)

    [kinds.count(:req), kinds.count(:req) + kinds.count(:opt)]
  end
end
