# frozen_string_literal: true

require "test_helper"
require "heddle/http"
require "heddle/rack"

# The exchange is the unit of work. Each test is a place where shared code once knew HTTP/1.1 or took the connection for
# the request, and keeps that out. test/layers_test.rb has the rules for includes and names.
class StructureTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)

  # 1
  def test_each_connection_has_its_own_protocol
    assert_empty found("ext/heddle/**/*.[ch]", /sockets->protocol\b/)
    assert_includes fields("net/connection.h", "heddle_connection"), "const heddle_protocol *protocol"
    refute_match(/protocol/, fields("net/sockets.h", "heddle_sockets").join)
  end

  # 2
  def test_runners_and_admission_take_work_items
    assert_empty(fields("net/connection.h", "heddle_connection").grep(/ready|queued|\bheddle_work\b/))
    assert_includes fields("http/exchange.h", "heddle_exchange"), "heddle_work work"
    assert_empty found("ext/heddle/net/{runner,runners,rounds}.[ch]", /heddle_(?:exchange|h1|h2)\b/)
  end

  # 3
  def test_events_reach_the_protocol_while_a_request_runs
    delivery = function("net/sockets.c", "heddle_sockets_deliver_now")

    assert_match(/protocol->handle_event\(connection, ready\)/, delivery)
    refute_match(/running/, delivery)
  end

  # 4
  def test_an_exchange_is_no_connection
    refute_includes Heddle::HTTP::Exchange.ancestors, Heddle::Net::Connection
  end

  # 5, 12
  def test_body_and_time_limits_are_not_the_connections
    assert_empty(fields("net/connection.h", "heddle_connection").grep(/body|chunk|expect|received|deadline/))
    assert_includes fields("http/exchange.h", "heddle_exchange").join("; "), "heddle_body_spool *spool"
    assert_includes fields("http/h2/server/server.h", "heddle_h2_carrier"), "heddle_due due"
  end

  # 6, 7
  def test_responses_leave_by_the_operations_of_their_protocol
    refute_path_exists "#{ROOT}/ext/heddle/http/exchange_sending.c"
    assert_empty found("ext/heddle/rack/exchange.c", %r{heddle_(?:output|transport)_\w+\(|HTTP/1})
    assert_match(/operations->respond\(/, source("rack/exchange.c"))
  end

  # 8
  def test_only_http_1_frames_with_lines_and_chunks
    assert_empty found("ext/heddle/{net,rack,pubsub,scheduler}/**/*.[ch]", /transfer-encoding|"chunked/)
    assert_empty found("ext/heddle/http/h2/*.[ch]", %r{chunk_head|HTTP/1})
    assert_empty found("ext/heddle/http/h2/server/*.[ch]",
                       %r{split_lines|HTTP/1|HEDDLE_AS_LINES})
  end

  # 9
  def test_ruby_code_above_http_names_no_version
    assert_empty found("lib/heddle/{rack,server}/**/*.rb", /\bminor ==|\bH[12]::/)
  end

  # 10
  def test_counters_are_the_engines
    assert_empty found("ext/heddle/http/{h1,h2}/**/*.h",
                       /heddle_latency latency|uint64_t (?:requests|answers|rejections)\b/)
    assert_includes fields("http/engine.h", "heddle_engine").join("; "), "heddle_latency latency"
  end

  # 11
  def test_no_connection_moves_for_one_of_its_requests
    assert_empty Dir["#{ROOT}/{ext,lib}/heddle/**/*quarantine*"]
    assert_empty found("{ext,lib}/heddle/**/*.{c,h,rb}", /quarantine|read_so_far/)
  end

  # 13
  def test_net_knows_no_requests
    assert_empty found("ext/heddle/net/**/*.[ch]", /heddle_(?:method|target|request_head|exchange)\b|learned/)
    assert_empty found("lib/heddle/net/**/*.rb", /"(?:HTTP|SSL|REQUEST|SERVER)_/)
  end

  # One enum and one table of transitions for each set of states; debug builds abort on a step that is not in it.
  MACHINES = {
    "net/owner.h" => /HEDDLE_ASSERT\(heddle_owner_may_change\(/,
    "net/handshake.c" => /HEDDLE_ASSERT\(heddle_handshake_may_enter\(/,
    "http/h1/states.h" => /HEDDLE_ASSERT\(heddle_h1_may_enter\(/,
    "http/exchange.h" => /HEDDLE_ASSERT\(heddle_exchange_may_enter\(/,
    "http/h2/session_state.h" => /HEDDLE_ASSERT\(allowed\[session->stage\]/,
    "http/h2/streams.c" => /heddle_h2_transitions\[stream->state\]\[event\];\n *HEDDLE_ASSERT/,
    "http/h2/client/client.h" => /HEDDLE_ASSERT\(heddle_h2_client_may_enter\(/,
    "http/push/session.c" => /HEDDLE_ASSERT\(heddle_websocket_may_enter\(/,
    "http/h1/response_reader.c" => /HEDDLE_ASSERT\(transitions\[/,
    "scheduler/loop.h" => /HEDDLE_ASSERT\(heddle_loop_may_enter\(/
  }.freeze
  # The one assignment of each is in the function that checks it.
  ASSIGNMENTS = { /\bh1->stage = / => 1, /\bsession->stage = (?!is_client)/ => 1, /\bsession->drain_stage = / => 1,
                  /\bconnection->stage = / => 1, /\bloop->state = / => 1,
                  /\bexchange->state = (?!HEDDLE_EXCHANGE_SPARE)/ => 1, /\bsocket->state = / => 1,
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

  # Shared memory is set up, the monotonic clock read, a length of time checked, and the limits of heads and bodies
  # converted in one place each.
  def test_shared_work_is_written_once
    assert_equal ["ext/heddle/net/shared_memory.c: memfd_create("], found("ext/heddle/**/*.[ch]", /\bmemfd_create\(/)
    assert_empty found("ext/heddle/**/*.[ch]", /clock_gettime\(CLOCK_MONOTONIC/)
    clocks = found("lib/**/*.rb", /clock_gettime\(Process::CLOCK_MONOTONIC(?:\)|, :nano)/)

    assert_equal ["lib/heddle/monotonic_clock.rb"], clocks.map { |place| place[/\A[^:]+/] }.uniq
    assert_equal 1, found("lib/**/*.rb", /\.is_a\?\(Numeric\) && \w+\.positive\?/).size
    assert_equal 1, found("ext/heddle/**/*.[ch]", /"request_line_limit"\)/).size
  end

  # The folder names tell where a default is: no number is a default anywhere else.
  def test_defaults_of_options_are_in_one_place
    defined = found("lib/**/*.rb", /\bOption\.(?:new|limit)\(/).map { |place| place[/\A[^:]+/] }.uniq

    assert_empty defined.reject { |file| file.start_with?("lib/heddle/options/") }
    assert_empty found("lib/heddle/http/client.rb", /\w: \d\w*(?=[,)])/)
  end

  # A table of operations stands between the handoff and the connections of a loop.
  def test_the_handoff_is_tested_without_replacing_functions
    assert_empty found("test/c/handoff_test.c", /^\w[^\n;{}]*\bheddle_\w+\([^;{}]*\)\n\{/)
  end

  # Parsers over Strings, and envs of Ruby objects, are the tests' alone: test/http/h1/support, test/rack/support.
  def test_parsers_for_tests_are_not_in_the_library
    assert_empty found("ext/heddle/**/*.[ch]", /"(?:Head|Response)Parser"/)
    assert_empty found("ext/heddle/rack/*.[ch]", /"build"|inet_pton/)
  end

  def test_channel_and_watch_stand_for_one_class_each
    names = found("lib/heddle/**/*.rb", /\b(?:class|module) (Channel|Watch)\b/)

    assert_equal 2, names.size, names.join(", ")
  end

  private

  def source(path) = File.read("#{ROOT}/ext/heddle/#{path}")

  def found(pattern, wanted)
    files = Dir.glob(pattern, base: ROOT).reject { |file| File.directory?("#{ROOT}/#{file}") }

    refute_empty files, pattern
    files.flat_map { |file| code(File.read("#{ROOT}/#{file}")).scan(wanted).map { |word| "#{file}: #{word}" } }
  end

  # Without comments.
  def code(text) = text.gsub(%r{/\*.*?\*/}m, "").gsub(/^\s*#(?!include).*$/, "")

  # The fields of a struct, as they are written.
  def fields(path, name)
    text = code(source(path))
    body = text[/^struct #{name} \{\n(.*?)^\};/m, 1] || text[/^typedef struct \{\n((?:(?!^\}).)*)^\} #{name};/m, 1] ||
           flunk("no struct #{name} in #{path}")
    body.split(";").map(&:strip)
  end

  def function(path, name) = source(path)[/^[^\n]*\b#{name}\([^;]*?\)\n\{.*?^\}/m] || flunk("no #{name} in #{path}")
end
