# frozen_string_literal: true

# test: once

require "test_helper"

# Each state machine of the C core has one enum, one table of transitions and one function that changes the state.
# test/layers_test.rb has the rules for includes and names.
class StructureTest < Minitest::Test
  # Debug builds abort on a transition that is not in the table.
  MACHINES = {
    "net/transport.h" => /HEDDLE_ASSERT\(heddle_owner_may_change\(/,
    "net/handshake.c" => /HEDDLE_ASSERT\(heddle_handshake_may_enter\(/,
    "http/h1/server/states.h" => /HEDDLE_ASSERT\(heddle_h1_may_enter\(/,
    "http/exchange.h" => /HEDDLE_ASSERT\(heddle_exchange_may_enter\(/,
    "http/h2/session_state.h" => /HEDDLE_ASSERT\(allowed\[session->stage\]/,
    "http/h2/streams.c" => /heddle_h2_transitions\[stream->state\]\[event\];\n *HEDDLE_ASSERT/,
    "http/h2/client/client.h" => /HEDDLE_ASSERT\(heddle_h2_client_may_enter\(/,
    "http/push/session.c" => /HEDDLE_ASSERT\(heddle_push_may_enter\(/,
    "http/h1/client/response_reader.c" => /HEDDLE_ASSERT\(transitions\[/,
    "scheduler/loop.h" => /HEDDLE_ASSERT\(heddle_loop_may_enter\(/
  }.freeze
  # The one assignment of each is in the function that checks it.
  ASSIGNMENTS = { /\bh1->stage = / => 1, /\bsession->stage = (?!is_client)/ => 1, /\bsession->drain_stage = / => 1,
                  /\bconnection->stage = / => 1, /\bloop->state = / => 1,
                  /\bexchange->state = (?!HEDDLE_EXCHANGE_SPARE)/ => 1, /\bsession->state = / => 1,
                  /\breader->state = / => 1, /\bstream->stage = / => 1 }.freeze

  def test_every_state_machine_has_a_table
    MACHINES.each { |file, check| assert_match(check, source(file), file) }
  end

  def test_states_change_where_they_are_checked
    ASSIGNMENTS.each do |assignment, count|
      places = found("ext/heddle/**/*.[ch]", assignment)

      assert_equal count, places.size, places.join(", ")
    end
  end

  # RuboCop looks at Ruby alone.
  def test_lines_of_c_have_at_most_120_columns
    long = Dir["#{ROOT}/ext/heddle/**/*.{c,h}"].flat_map do |file|
      File.foreach(file, chomp: true).with_index(1).filter_map { |line, n| "#{file}:#{n}" if line.size > 120 }
    end

    assert_empty long
  end

  private

  def source(path) = File.read("#{ROOT}/ext/heddle/#{path}")

  def found(pattern, wanted)
    files = Dir.glob(pattern, base: ROOT)

    refute_empty files, pattern
    files.flat_map { |file| code(File.read("#{ROOT}/#{file}")).scan(wanted).map { |word| "#{file}: #{word}" } }
  end

  # Without comments.
  def code(text) = text.gsub(%r{/\*.*?\*/}m, "")
end
