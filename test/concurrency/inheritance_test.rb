# frozen_string_literal: true

require "test_helper"
require "heddle"
require "active_support"
require "active_support/current_attributes"
require "active_support/isolated_execution_state"
require "active_support/tagged_logging"
require "logger"
require "opentelemetry/sdk"
require "stringio"

# What a task inherits from the code that starts it.
class InheritanceTest < Minitest::Test
  class Current < ActiveSupport::CurrentAttributes
    attribute :user, :list
  end

  KEY = OpenTelemetry::Context.create_key("test")

  def setup
    ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
    @output = StringIO.new
    @logger = ActiveSupport::TaggedLogging.new(Logger.new(@output))
  end

  # @return what the task's block returns, with a tag, a user and a context around its start
  def inherit(kinds, &)
    Heddle.run do
      Current.user = "ann"
      OpenTelemetry::Context.with_value(KEY, "span") do
        @logger.tagged("request 7") { Heddle.async(inherit: kinds, &).value }
      end
    end
  end

  def seen = [@logger.formatter.current_tags.dup, Current.user, OpenTelemetry::Context.value(KEY)]

  def test_task_inherits_nothing_of_rails_by_default
    assert_equal [[], nil], inherit(nil) { seen }.first(2)
  end

  def test_task_inherits_everything
    assert_equal [["request 7"], "ann", "span"], inherit(true) { seen }
  end

  def test_task_inherits_what_was_named
    assert_equal [["request 7"], nil], inherit(:tags) { seen }.first(2)
    assert_equal [[], "ann"], inherit([:current]) { seen }.first(2)
    assert_equal [[], nil, "span"], inherit(%i[trace]) { seen }
  end

  def test_lines_of_a_task_have_the_tags_after_the_request_has_left_its_block
    Heddle.run do
      gate = Heddle::Promise.new
      task = @logger.tagged("request 7") do
        Heddle.async(inherit: :tags) do
          gate.value
          @logger.info("from the task")
        end
      end
      @logger.info("outside")
      gate.resolve(true)
      task.wait
    end

    assert_equal ["outside\n", "[request 7] from the task\n"], @output.string.lines
  end

  def test_changes_of_a_task_are_its_own
    after = nil
    Heddle.run do
      Current.user = "ann"
      @logger.tagged("request 7") do
        Heddle.async(inherit: true) do
          Current.user = "bob"
          @logger.push_tags("of the task")
        end.wait
        after = [@logger.formatter.current_tags.dup, Current.user]
      end
    end

    assert_equal [["request 7"], "ann"], after
  end

  def test_unknown_kind_is_refused
    error = assert_raises(ArgumentError) { Heddle.run { Heddle.async(inherit: :tag) { nil } } }

    assert_equal "inherit is :tag, but must be true or any of tags, current, trace", error.message
  end
end
