# frozen_string_literal: true

# test: each version

require "test_helper"
require_relative "server_helpers"

# YJIT is switched on for an application, and never against its settings. A double stands for RubyVM::YJIT: not every
# Ruby has it, and nothing switches it off again.
class ServerJITTest < Minitest::Test
  include ServerHelpers

  class Compiler
    attr_reader :calls

    def initialize(enabled: false)
      @enabled = enabled
      @calls = 0
    end

    def enabled? = @enabled

    def enable
      @calls += 1
      @enabled = true
    end
  end

  Settings = Struct.new(:yjit)
  Application = Struct.new(:config)
  # As Rails, for what is asked of it.
  FakeRails = Struct.new(:application)

  # By RUBYOPT=--zjit, say: then YJIT stays off whatever the settings are.
  def setup
    super
    other = defined?(RubyVM::ZJIT) && RubyVM::ZJIT.respond_to?(:enabled?) && RubyVM::ZJIT.enabled?
    skip "another just-in-time compiler is on" if other
  end

  def enable(compiler, environment = {}) = Heddle::Server::JIT.enable(compiler:, environment:)

  def with_rails(config)
    fake = FakeRails.new(Application.new(config))
    had = Object.const_get(:Rails) if Object.const_defined?(:Rails)
    Object.send(:remove_const, :Rails) if had
    Object.const_set(:Rails, fake)
    yield
  ensure
    Object.send(:remove_const, :Rails)
    Object.const_set(:Rails, had) if had
  end

  def test_yjit_is_enabled_once
    compiler = Compiler.new

    assert enable(compiler)
    refute enable(compiler)
    assert_equal 1, compiler.calls
  end

  def test_a_ruby_without_it_continues
    refute enable(nil)
  end

  def test_the_variable_of_ruby_counts
    %w[0 no false].each do |value|
      compiler = Compiler.new

      refute enable(compiler, { "RUBY_YJIT_ENABLE" => value })
      assert_equal 0, compiler.calls
    end
    assert enable(Compiler.new, { "RUBY_YJIT_ENABLE" => "1" })
  end

  def test_rails_setting_counts
    with_rails(Settings.new(false)) { refute enable(Compiler.new) }
    with_rails(Settings.new(true)) { assert enable(Compiler.new) }
    with_rails(Object.new) { assert enable(Compiler.new) }
  end

  def test_a_server_switches_it_on_before_it_serves
    with_compiler do |compiler|
      serving(->(_env) { [200, {}, []] }) { assert_equal 1, compiler.calls }
    end
  end

  # In place of this Ruby's own, if it has YJIT.
  def with_compiler
    own = RubyVM.send(:remove_const, :YJIT) if RubyVM.const_defined?(:YJIT, false)
    RubyVM.const_set(:YJIT, compiler = Compiler.new)
    yield compiler
  ensure
    RubyVM.send(:remove_const, :YJIT)
    RubyVM.const_set(:YJIT, own) if own
  end

  def test_yjit_is_enabled_if_this_ruby_has_it
    script = "require 'heddle/server'; Heddle::Server::JIT.enable; " \
             "print defined?(RubyVM::YJIT) ? RubyVM::YJIT.enabled? : :none"
    out = IO.popen([{ "RUBY_YJIT_ENABLE" => nil }, RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-e", script], &:read)

    assert_equal RubyVM.const_defined?(:YJIT) ? "true" : "none", out
  end
end
