# frozen_string_literal: true

require "test_helper"
require_relative "../../../benchmark/support/bench"

class Http2SuiteTest < Minitest::Test
  def suite = Bench::Suite.load("http2")

  def test_rows_and_contestants_have_names_of_their_own
    keys = suite.rows.map(&:key)

    assert_equal keys.uniq, keys
    assert_equal %w[heddle falcon itsi-threads itsi-fibers nginx node], suite.contestants.map(&:key)
    assert_includes suite.contestants.map(&:key), suite.reference
  end

  def test_a_row_over_tls_is_measured_on_a_server_that_speaks_it
    Dir.mktmpdir do |folder|
      suite.contestants.each do |contestant|
        plain = [contestant.command(9, folder, []), *texts(folder)].join(" ")
        secure = [contestant.over_tls.command(9, folder, []), *texts(folder)].join(" ")

        refute_match(/certificate|https/, plain, contestant.key)
        assert_match(/certificate|https/, secure, contestant.key)
      rescue Bench::HTTP::Contestant::Unavailable, Gem::Exception
        next # not installed here
      ensure
        FileUtils.rm_f(Dir[File.join(folder, "*")])
      end
    end
  end

  # The configuration files that were written.
  def texts(folder) = Dir[File.join(folder, "{Itsi.rb,nginx.conf}")].map { |path| File.read(path) }

  def test_heddle_answers_over_http2_in_both_ways
    need_program("curl")
    heddle = suite.contestant("heddle")
    [heddle, heddle.over_tls].each do |contestant|
      Bench::HTTP2::Server.run(contestant, ruby_flags: []) do |server|
        server.check("/hello", expected: Bench::Application::HELLO)
        server.check("/upload", body: "12345", expected: "5\n")
      end
    end
  end
end
