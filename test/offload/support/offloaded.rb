# frozen_string_literal: true

require "test_helper"
require "concurrency/support/loop_helpers"
require "support/scheduled"
require_relative "native_calls"

# Tests of a process whose native calls are offloaded.
module Offloaded
  include Heddle::LoopHelpers
  include Scheduled

  def setup
    super
    @was_on = Heddle.enabled.include?(:offload)
    Heddle.enable :offload, allow: ["native_calls"] # it has locks of its own, of which each call lets go
    require NativeCallsLibrary.path
    NativeCalls.reset
  end

  def teardown
    Heddle.disable(:offload) unless @was_on
    super
  end

  # Lets the others run until so many native calls are under way.
  def until_inside(number)
    until_true { NativeCalls.inside == number }
  end

  # What is known of the function that a method of NativeCalls calls.
  def known(method)
    Heddle::Offload.functions.find { |function| function[:method] == method && function[:library] =~ /native_calls/ }
  end

  # With RubyGems, which protections need.
  def ruby(*, flags: [], **) = super(*, flags: ["--enable=gems", *flags], **)

  # Runs a Ruby program with offloading on in a process of its own. It prints it, too, when another fiber runs during a
  # callback of a native library (test/support/callback_check.rb).
  # @param options [String] further arguments of Heddle.enable
  # @param allow [Boolean] whether the test extension's calls are allowed to run on any thread
  # @param status [true, nil] whether it succeeds; nil: a signal ends it
  # @return [String] what it printed
  def offloading(program, *arguments, env: {}, options: "", allow: true, status: true)
    options += ", allow: ['native_calls']" if allow
    head = "require 'heddle'; Heddle.enable(:offload#{options}); Heddle.enable :callback_report; " \
           "require #{NativeCallsLibrary.path.dump}; "
    output, ended = ruby(head + program, *arguments, env: env)

    assert_equal [status], [ended.success?], output
    output
  end
end
