# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/public_api"

# Users may call what sig/ shows, and nothing else is public: other methods and constants are private, or under a
# constant with a mark: see PublicApi::PrivateMarks.
class ApiTest < Minitest::Test
  SIGNATURES = PublicApi::SIGNATURES
  RUNTIME = PublicApi::RUNTIME
  # Programs require the file of these.
  NEEDS_A_GEM = /\A(?:|Heddle::(?:Async|Cable|Minitest)(?:::.*)?)\z/
  # Methods that Ruby gives to each class of Data.
  DATA = %i[[] members].freeze

  def test_every_public_constant_is_in_sig
    assert_empty RUNTIME.missing.sort, "public constants that sig/ does not show"
  end

  def test_every_public_instance_method_is_in_sig
    missing = RUNTIME.sealed.flat_map do |path, mod|
      names = mod.public_instance_methods(false).reject { |name| inherited?(mod, name) }
      (names - SIGNATURES.modules[path].instance.to_a).map { |name| "#{path}##{name}" }
    end

    assert_empty missing.sort, "public methods that sig/ does not show"
  end

  def test_every_public_singleton_method_is_in_sig
    missing = RUNTIME.sealed.flat_map do |path, mod|
      names = mod.singleton_class.public_instance_methods(false).reject { |name| inherited?(mod.singleton_class, name) }
      (names - SIGNATURES.modules[path].singleton.to_a).map { |name| "#{path}.#{name}" }
    end

    assert_empty missing.sort, "public methods that sig/ does not show"
  end

  def test_sig_shows_nothing_that_is_not_public
    wrong = SIGNATURES.modules.reject { |path, _| path.empty? }.flat_map do |path, entry|
      next path unless (mod = RUNTIME.modules[path])

      entry.constants.reject { |name| mod.const_defined?(name, false) }.map { |name| "#{path}::#{name}" } +
        entry.instance.reject { |name| mod.public_method_defined?(name) || name == :initialize }
             .map { |name| "#{path}##{name}" } +
        entry.singleton.reject { |name| mod.respond_to?(name) }.map { |name| "#{path}.#{name}" }
    end

    assert_empty wrong.sort, "in sig/, but not public"
  end

  # The tests above load more than a program that follows the reference.
  def test_what_sig_shows_is_there_when_heddle_alone_is_loaded
    shown = SIGNATURES.modules.reject { |path, _| path.match?(NEEDS_A_GEM) }
    program = <<~RUBY
      require "heddle"
      #{shown.transform_values { |entry| [entry.instance.to_a, entry.singleton.to_a] }.inspect}.each do |path, (instance, singleton)|
        mod = Object.const_get(path)
        instance.each { |name| mod.instance_method(name) }
        singleton.each { |name| mod.respond_to?(name) or puts "\#{path}.\#{name}" }
      rescue NameError => e
        puts e.message.lines.first
      end
    RUBY
    missing, = Open3.capture2e(RbConfig.ruby, "-W0", "-I#{File.expand_path("../lib", __dir__)}", stdin_data: program)

    assert_empty missing
  end

  private

  # A method that the public ancestors have, too: sig/ shows it there.
  def inherited?(mod, name)
    return true if DATA.include?(name) && mod.singleton_class? && mod.attached_object < Data

    mod.ancestors.drop_while { |one| one != mod }.drop(1).any? { |one| one.public_method_defined?(name, false) }
  end
end
