# frozen_string_literal: true

# test: long

require "test_helper"
require_relative "../../../benchmark/questions/experiment"

# Each answer of docs/questions.md, as its experiment finds it when it is short. Times have limits that a busy machine
# keeps: the memory of a request, for which there is none, is only printed.
class QuestionsTest < Minitest::Test
  PAGE = File.join(ROOT, "docs/questions.md")

  def find(name) = Bench::Questions.find(name, quick: true).join("\n")

  def test_the_page_has_a_command_for_every_experiment
    named = File.read(PAGE).scan(%r{bin/bench questions (\w+)}).flatten

    assert_equal Bench::Questions::NAMES, named.uniq.sort
  end

  def test_variables_of_a_fiber_and_listed_ones_of_a_thread_belong_to_a_request
    found = find("thread_variables")

    assert_includes found, "Thread.current[]: 50 of 50"
    assert_includes found, "Fiber[]: 50 of 50"
    assert_includes found, "a thread variable: 1 of 50"
    assert_includes found, "a thread variable that --isolate lists: 50 of 50"
  end

  def test_all_requests_are_answered_with_fewer_connections_than_requests
    assert_equal 2, find("connections").scan("50 of 50 answered").size
  end

  def test_all_requests_are_answered_while_workers_are_replaced
    assert_match(/ 100\.00 %\z/, find("availability"))
  end

  def test_waits_of_one_request_are_one_after_the_other_unless_the_application_says_otherwise
    after, at_once = find("one_request").scan(/: ([\d.]+) s$/).flatten.map(&:to_f)

    assert_operator after, :>=, 1.5
    assert_operator at_once, :>=, 0.5
  end

  def test_native_calls_are_made_in_four_ways
    assert_equal 4, find("native_calls").scan(/waits for \d+ ms at most$/).size
  end

  def test_memory_is_printed_for_fibers_and_threads
    assert_equal 2, find("memory").scan(/-?[\d.]+ kB each$/).size
  end
end
