# frozen_string_literal: true

require "test_helper"
require "rack"
require "stringio"
require_relative "../../../benchmark/support/bench"
require_relative "../support/suite_promises"

class SeedsBenchmarkSuiteTest < Minitest::Test
  include SuitePromises
  include GoalPromises

  def setup
    @suite = Bench::Suite.load("seeds")
  end

  def test_the_application_prices_items
    status, headers, body = Bench::Seeds::Application.new(nil).call("PATH_INFO" => "/json/2", "QUERY_STRING" => "m=3")
    answer = JSON.parse(body.join)

    assert_equal [200, "application/json", 2], [status, headers["content-type"], answer["count"]]
    answer["items"].each { |item| assert_equal item["price"] * item["quantity"] * 3, item["total"] }
  end

  def test_files_of_text_have_a_compressed_form_beside_them
    Dir.mktmpdir do |folder|
      Bench::Seeds::StaticFiles.write(folder)
      files = Dir.children(File.join(folder, "static"))

      assert_equal 20, Bench::Seeds::StaticFiles.paths.size
      assert_equal 35, files.size
      text = File.binread(File.join(folder, "static/app.js"))

      assert_equal 200_000, text.bytesize
      assert_equal text, Zlib.gunzip(File.binread(File.join(folder, "static/app.js.gz")))
    end
  end

  # One connection has a third of the answers of the others.
  def test_fairness_row_shows_a_connection_that_gets_fewer_answers
    listener = TCPServer.new("127.0.0.1", 0)
    acceptor = Thread.new { loop { Thread.new(listener.accept) { |socket| answer_all(socket) } } }
    server = Data.define(:port) { def check(*, **) = nil }.new(listener.addr[1])
    sample = @suite.row("fairness").measure(server, { seconds: 0.5 })

    assert_operator sample[:value], :>, 1.5
    assert_operator sample[:answered], :>, 0
  ensure
    acceptor&.kill
    listener&.close
  end

  def answer_all(socket)
    pause = (@pauses ||= Thread::Queue.new([0.03, *[0.01] * 7])).pop
    while socket.readpartial(1_024)
      sleep(pause)
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n610\n")
    end
  rescue EOFError
    socket.close
  end

  def test_puma_with_16_threads_runs_only_in_its_own_row
    puma = @suite.contestant("puma-16")

    assert_equal %w[sleep-100ms-100], @suite.rows.reject { |row| row.excludes(puma) }.map(&:key)
  end
end
