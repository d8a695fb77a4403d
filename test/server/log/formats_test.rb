# frozen_string_literal: true

# test: sanitize
# test: smoke

require "test_helper"
require "json"
require "open3"
require "support/h2_client"
require_relative "../server_helpers"

# The same requests in each format of the log.
class LogFormatsTest < Minitest::Test
  include ServerHelpers

  # obs-text and quotes are legal in values (RFC 9110, 5.5).
  HOSTILE = "GET /a\"b\\c HTTP/1.1\r\nHost: a\r\nUser-Agent: \"x\\\xff \xe2\x80\xa8\xc2\x9b\r\n" \
            "Referer: http://b/\"\r\nConnection: close\r\n\r\n".b

  def lines_of(format, *requests, app: text, **options)
    serving(app, lint: false, log_format: format, protect: [], **options) do
      requests.each { |request| exchange(request) }
    end
    log_lines
  end

  def request(target = "/hello?a=b", *fields)
    ["GET #{target} HTTP/1.1", "Host: a", "Connection: close", *fields, "", ""].join("\r\n")
  end

  def test_text_is_the_default
    assert_match(%r{\A\d\d:\d\d:\d\d 200 GET /hello\?a=b 5 bytes in [\d.]+ ms for 127\.0\.0\.1\n\z},
                 lines_of(:text, request).join)
    assert_equal :text, Heddle::Server::Configuration.new.log_format
  end

  def test_json_has_everything_in_one_object_a_line
    line, = lines_of(:json, request("/hello?a=b", "User-Agent: wrk", "Referer: http://b/"))
    fields = JSON.parse(line)

    assert_equal({ "level" => "info", "event" => "request", "method" => "GET", "target" => "/hello?a=b",
                   "status" => 200, "bytes" => 5, "remote" => "127.0.0.1", "protocol" => "HTTP/1.1", "host" => "a",
                   "user_agent" => "wrk", "referer" => "http://b/" }, fields.except("time", "duration", "account"))
    assert_includes fields["account"].keys, "running"
    assert_kind_of Float, fields["duration"]
    assert_in_delta Time.now, Time.iso8601(fields["time"]), 60
  end

  def test_the_client_behind_a_trusted_proxy_is_named_and_in_json_both
    forwarded = request("/", "X-Forwarded-For: 198.51.100.1, 192.0.2.7, 10.0.0.3")
    text, = lines_of(:text, forwarded)
    clf, = lines_of(:clf, forwarded)
    json, = lines_of(:json, forwarded).map { |line| JSON.parse(line) }

    assert_match(/ for 192\.0\.2\.7$/, text)
    assert_match(/\A192\.0\.2\.7 - - /, clf)
    assert_equal ["192.0.2.7", "127.0.0.1"], json.values_at("remote", "proxy")
  end

  def test_forwarding_fields_of_an_untrusted_client_are_ignored
    lines = lines_of(:json, request("/", "X-Forwarded-For: 192.0.2.7", "Forwarded: for=192.0.2.8"),
                     trusted_proxies: ["10.0.0.0/8"])
    found = lines.map { |line| JSON.parse(line) }.find { |line| line["event"] == "request" }

    assert_equal ["127.0.0.1", nil], found.values_at("remote", "proxy")
  end

  def test_json_is_json_whatever_a_client_sends
    line, rest = lines_of(:json, HOSTILE)
    fields = JSON.parse(line.force_encoding(Encoding::UTF_8))

    assert_nil rest
    assert_predicate line, :valid_encoding?
    assert_equal "/a\"b\\c", fields["target"]
    assert_equal "\"x\\\uFFFD \u2028\u009B", fields["user_agent"]
    refute_match(/[\u009B\u2028]/, line, "a terminal would obey them")
  end

  def test_an_error_in_an_encoding_that_ruby_cannot_convert_is_logged_and_answered
    app = ->(_env) { raise "b\xFFad".b.force_encoding("UTF-7") }
    { text: "b\\xFFad", json: "b\uFFFDad", clf: "b\\xFFad" }.each do |format, message|
      serving(app, lint: false, log_format: format) { assert_match(/\AHTTP.1.1 500 /, exchange(request)) }

      assert_includes errors.string.dup.force_encoding(Encoding::UTF_8), message
    end
  end

  def test_json_has_fields_for_rejections_failures_and_events
    app = ->(_env) { raise ArgumentError, "b\xFFad \"thing\"" }
    lines = lines_of(:json, "nonsense\r\n\r\n", request("/broken"), app:, request_id: true)
    lines.map! { |line| JSON.parse(line) }

    assert_equal(["request_rejected", 400], lines[0].values_at("event", "status"))
    assert_equal(["request", 500], lines[1].values_at("event", "status"))
    failure = JSON.parse(errors.string.lines.first)

    assert_equal ["error", "request_failed", "ArgumentError", "b\uFFFDad \"thing\"", "/broken"],
                 failure.values_at("level", "event", "class", "error", "target")
    assert_match(/formats_test\.rb/, failure["backtrace"].first)
    assert_equal lines[1]["request_id"], failure["request_id"]
    log = Heddle::Server::Log.new(output: out = StringIO.new, format: :json)
    log.event(:worker_killed, role: "worker", worker: 0, pid: 7, reason: "no heartbeat for 60 s")

    assert_equal({ "level" => "warn", "event" => "worker_killed", "role" => "worker", "worker" => 0, "pid" => 7,
                   "reason" => "no heartbeat for 60 s",
                   "message" => "killing worker 0 (pid 7): no heartbeat for 60 s" },
                 JSON.parse(out.string).except("time"))
  end

  FORGED = "x\n17:00:00 200 GET /admin 12 bytes in 0.3 ms for 10.0.0.1\r\n\e]0;owned\a\u009B31m\xFF"

  # An exception that quotes a parameter lets a client choose its message.
  def test_exception_messages_are_escaped_in_log_lines
    app = lambda do |_env|
      raise ArgumentError, FORGED
    rescue ArgumentError => e
      raise KeyError, FORGED, ["#{__FILE__}:1:in '\e[2Jfoo\nbar'"], cause: e
    end
    lines_of(:text, request("/broken"), app:)
    lines = errors.string.lines(chomp: true)

    assert_match(%r{\A\d\d:\d\d:\d\d error in GET /broken: KeyError: x\z}, lines.shift)
    assert_equal "    17:00:00 200 GET /admin 12 bytes in 0.3 ms for 10.0.0.1", lines.shift
    assert_equal '    \x1B]0;owned\x07\x9B31m\xFF', lines.shift
    assert_equal "    from #{__FILE__}:1:in '\\x1B[2Jfoo\\x0Abar'", lines.shift
    assert_equal "    caused by ArgumentError: x", lines.shift
    lines.each { |line| assert_operator line, :start_with?, "        " }
    refute_match(/[^[:print:]\n]/, errors.string)
  end

  def test_class_names_are_escaped_in_log_lines
    named = Class.new(StandardError) { def self.to_s = FORGED }
    app = lambda do |_env|
      raise named, "inner"
    rescue named
      raise named, "outer"
    end
    lines_of(:text, request("/broken"), app:)

    errors.string.lines.each { |line| assert_match(/\A(?:\S+ error in GET |    )/, line) }
    refute_match(/[^[:print:]\n]/, errors.string)
  end

  def test_an_exception_without_a_message_is_logged_with_its_class
    %i[text json].product([RuntimeError, NotImplementedError, SystemStackError]) do |format, nested|
      failing = Class.new(StandardError) do
        def self.to_s = "Failing"
        define_method(:message) { raise(nested) }
      end
      lines_of(format, request("/broken"), app: ->(_env) { raise failing })

      assert_match(/Failing.*\(no message: message raised #{nested}\)/, errors.string)
    end
  end

  def test_an_exception_whose_backtrace_cannot_be_made_is_logged
    failing = Class.new(StandardError) do
      def self.to_s = "Failing"
      def backtrace = raise(NotImplementedError)
    end
    app = lambda do |env|
      raise failing, "inner"
    rescue failing
      env["PATH_INFO"] == "/outer" ? raise("outer") : raise
    end
    lines_of(:text, request("/inner"), request("/outer"), app:)

    assert_match(%r{error in GET /inner: Failing: inner\n}, errors.string)
    assert_match(%r{error in GET /outer: RuntimeError: outer\n.*    caused by Failing: inner}m, errors.string)
  end

  def test_an_exception_with_an_odd_backtrace_or_without_a_cause_to_be_had_is_logged
    odd = Class.new(StandardError) do
      def self.to_s = "Odd"
      def backtrace = [nil, "a.rb:1"]
      def cause = raise(NotImplementedError)
    end
    lines_of(:text, request("/odd"), app: ->(_) { raise odd, "inner" })

    assert_match(%r{error in GET /odd: Odd: inner\n +from a\.rb:1\n\z}, errors.string)
  end

  # It may quote the whole body of a request.
  def test_long_messages_are_cut
    ["é" * 100_000, ("é" * 100_000).encode("UTF-16LE"), "\xFF".b * 200_000].each do |message|
      lines_of(:text, request("/broken"), app: ->(_env) { raise message })

      assert_includes errors.string, " ... (200000 bytes)\n"
      assert_operator errors.string.bytesize, :<, 80_000
    end
  end

  def test_events_and_violations_are_one_entry_each
    log = Heddle::Server::Log.new(output: out = StringIO.new)
    log.event(:worker_requests, role: "worker", worker: 0, running: FORGED)
    log.rejected("10.0.0.1", 400, FORGED, false)

    out.string.lines.each { |line| assert_match(/\A(?:\d\d:\d\d:\d\d (?:worker|400)|    )/, line) }
    assert_equal 4, out.string.lines.size
    refute_match(/[^[:print:]\n]/, out.string)
  end

  def test_less_important_events_than_the_level_are_counted_and_not_logged
    log = Heddle::Server::Log.new(output: out = StringIO.new, errors: errors = StringIO.new, level: :error)
    log.event(:restart_started)
    log.event(:garbage_collection_off)
    log.event(:reload_failed, reason: "no room")

    refute_predicate log, :access?
    assert_empty out.string
    assert_match(/\A\S+ reload failed: no room; keeping the current workers\n\z/, errors.string)
    assert_equal({ garbage_collection_off: 1, reload_failed: 1 }, log.counts)
  end

  # Applications that log their requests themselves serve without lines for requests.
  def test_without_lines_for_requests_a_shortage_is_logged_unless_admission_reports_it
    log = Heddle::Server::Log.new(output: out = StringIO.new, access: false)
    log.rejected("10.0.0.1", 503, "no room", true)
    log.rejected("10.0.0.1", 400, "no request", false)

    assert_empty out.string
    2.times { log.rejected("10.0.0.1", 503, "the server is busy with its disk", false) }

    assert_match(/\A\S+ rejecting requests with 503: the server is busy with its disk\n\z/, out.string)
  end

  def test_json_has_no_byte_that_a_terminal_obeys
    lines_of(:json, request("/broken"), app: ->(_env) { raise ArgumentError, FORGED })

    assert_equal 1, errors.string.lines.size
    refute_match(/[^[:print:]\n]/, errors.string.dup.force_encoding(Encoding::UTF_8))
    assert_includes JSON.parse(errors.string)["error"], "\u009B31m"
  end

  def test_json_of_a_response_that_is_not_complete_says_so
    app = lambda do |_env|
      [200, {}, lambda { |stream|
        stream.write("a")
        raise "half-way"
      }]
    end
    line, = lines_of(:json, request, app:)

    assert_equal "not complete", JSON.parse(line)["remark"]
  end

  # What the application sends over its connection, nobody counts.
  def test_a_connection_that_the_application_has_taken_over_is_not_an_incomplete_answer
    partial = { "rack.hijack" => ->(io) { io.write("taken") && io.close } }
    full = ->(env) { env["rack.hijack"].call.close }
    lines = [->(_env) { [200, partial, []] }, full].map do |app|
      JSON.parse(lines_of(:json, request, app:, lint: false).join)
    end

    assert_equal [[200, "taken over"], [nil, "taken over"]], lines.map { |line| line.values_at("status", "remark") }
  end

  TIME = %r{\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}}
  CLF = /\A127\.0\.0\.1 - - \[#{TIME}\] "((?:[^"\\]|\\.)*)" (\d{3}|-) (\d+|-)/

  def test_common_is_apaches
    line, = lines_of(:clf, request)

    assert_match(/#{CLF}\n\z/, line)
    assert_equal ["GET /hello?a=b HTTP/1.1", "200", "5"], line.match(CLF).captures
  end

  def test_combined_adds_referer_and_user_agent_and_nothing_a_client_sends_breaks_it
    plain, = lines_of(:combined, request("/", "User-Agent: wrk"))
    hostile, = lines_of(:combined, HOSTILE)

    assert_operator plain, :end_with?, " \"-\" \"wrk\"\n"
    assert_equal 'GET /a\"b\\\\c HTTP/1.1', hostile.match(CLF)[1]
    assert_operator hostile, :end_with?, %q( "http://b/\"" "\"x\\\\\xff \xe2\x80\xa8\xc2\x9b"
)
    assert_predicate hostile, :ascii_only?
  end

  def test_apaches_formats_have_all_their_fields_for_a_rejected_request
    common, = lines_of(:clf, "BAD\r\n\r\n")
    combined, = lines_of(:combined, "BAD\r\n\r\n")

    assert_match(/#{CLF}\n\z/, common)
    assert_match(/#{CLF} "-" "-"\n\z/, combined)
  end

  def test_apaches_formats_hold_nothing_but_requests
    serving(text, log_format: :clf) { @log.event(:garbage_collection_off) }

    assert_empty output.string
    assert_match(/ full garbage collections are off /, errors.string)
  end

  # Clients send UTF-8 unescaped. A terminal obeys C1 controls and changes of direction.
  def test_raw_bytes_in_a_target_are_served_and_visible_in_the_log
    raw = "/caf\u00E9\u009B\u202E\u2069\u20AC".b << "\xFF".b
    app = ->(env) { [200, {}, [env["PATH_INFO"]]] }
    serving(app, lint: false, protect: []) do
      assert_operator exchange("GET #{raw} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".b).b, :end_with?, raw
      client = H2Client.new(connect)
      client.send_preface
      client.send_frame("HEADERS es+eh 1 :method=GET :scheme=http :authority=localhost :path=#{raw}".b)
      frame = client.read_frame until frame&.type == "DATA"

      assert_equal raw, frame.payload.b
    end

    shown = "/caf\u00E9\\xC2\\x9B\\xE2\\x80\\xAE\\xE2\\x81\\xA9\u20AC\\xFF"

    assert_equal 2, output.string.scan(" 200 GET #{shown} 18 bytes in ").size, output.string
  end

  def test_the_servers_own_response_to_a_failure_is_logged_with_its_size
    %w[--http1.1 --http2-prior-knowledge].each do |version|
      answer = nil
      serving(->(_env) { raise "no" }, lint: false, protect: []) do
        answer, = Open3.capture2("curl", "-s", version, "http://127.0.0.1:#{port}/")
      end

      assert_operator answer.bytesize, :>, 10
      assert_includes output.string, " 500 GET / #{answer.bytesize} bytes in ", version
    end
  end

  def test_long_targets_are_cut
    target = "/#{"x" * 7_000}"

    assert_operator lines_of(:text, request(target)).first.bytesize, :<, 400
    assert_equal 4_096, JSON.parse(lines_of(:json, request(target)).first)["target"].bytesize
    assert_operator lines_of(:combined, request(target)).first.bytesize, :<, 5_000
  end
end
