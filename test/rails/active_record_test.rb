# frozen_string_literal: true

# test: smoke

require "test_helper"
require "support/bundle"
require "support/private_postgresql"
require "support/served_process"

# Active Record in an application that is not Rails'.
class ActiveRecordTest < Minitest::Test
  GEMFILE = File.expand_path("bundles/rails_8_1/Gemfile", __dir__)
  private_constant :GEMFILE

  def setup
    skip "needs the gems of test/rails/bundles/rails_8_1: bin/setup" unless Bundle.installed?(GEMFILE)
    need_program("postgres") unless PrivatePostgresql.programs
    require "pg"
  end

  def teardown = @served&.stop

  def test_requests_have_connections_of_their_own_and_wait_for_them
    environment = Bundle.environment(GEMFILE).merge("DATABASE_URL" => PrivatePostgresql.shared.url)
    file = File.expand_path("active_record.ru", __dir__)
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", file, "--port", "0"], environment:)
    threads = Array.new(20) { Thread.new { @served.get("/") } }
    answers = threads.map { |thread| thread.join(30)&.value or flunk("one hangs") }

    assert_equal ["200 fiber"], answers.map { |answer| "#{answer.code} #{answer.body}" }.uniq, @served.output
    line = /pool 5, workers 1 → at most 5 connections; .* limit is 100$/

    assert_match line, @served.await_output(line)
  end

  def test_a_single_process_counts_its_own_connections_whatever_workers_is
    environment = Bundle.environment(GEMFILE).merge("DATABASE_URL" => PrivatePostgresql.shared.url,
                                                    "HEDDLE_WORKERS" => "2", "RACK_ENV" => "production")
    start = "require 'rackup'; Rackup::Handler.get('heddle').run(Rack::Builder.parse_file(ARGV[0]), Port: 0)"
    file = File.expand_path("active_record.ru", __dir__)
    @served = ServedProcess.new([RbConfig.ruby, "-e", start, file], environment:)
    line = /pool 5, workers 1 → at most 5 connections; .* limit is 100$/

    assert_match line, @served.await_output(line)
  end
end
