# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "served_example"
require "support/private_postgresql"
require_relative "support/board"

# A copy of examples/rails_postgresql in development, whose code changes while requests run.
class RailsReloadTest < Minitest::Test
  include Board

  def setup
    need_board
    @folder = Dir.mktmpdir("heddle-board")
    FileUtils.cp_r("#{Board::FOLDER}/.", @folder)
    @code = File.join(@folder, "app/controllers/levels_controller.rb")
    say("first")
    environment = ServedExample.bundle("rails_postgresql").merge(environment("development"))
    environment["HEDDLE_QUEUE_TIMEOUT"] = "600" # on a busy machine, the first request loads code for longer than 10 s
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "--port", "0"], environment:, folder: @folder)
  end

  def teardown
    @served&.stop
    FileUtils.rm_rf(@folder) if @folder
  end

  # Rails looks at the times of files, in whole and broken seconds as the file system has them.
  def say(word)
    File.write(@code, <<~RUBY)
      class LevelsController < ApplicationController
        def show
          sleep 0.02
          render plain: "#{word} \#{Note.name} \#{self.class.equal?(LevelsController)}"
        end
      end
    RUBY
  end

  def fifty
    Array.new(50) { Thread.new { @served.get("/levels") } }
  end

  def test_the_first_fifty_requests_may_come_at_once_and_load_the_same_code
    answers = fifty.map { |thread| thread.join(60)&.value or flunk("one hangs:\n#{@served.output}") }

    assert_equal ["200 first Note true"], answers.map { |answer| "#{answer.code} #{answer.body}" }.uniq, @served.output
  end

  def test_code_that_changes_while_fifty_requests_run_is_reloaded_without_a_hang
    assert_equal "first Note true", @served.get("/levels").body, @served.output
    repetitions(2).times do |round|
      running = fifty
      say("round#{round}")
      later = fifty
      answers = (running + later).map { |thread| thread.join(60)&.value or flunk("one hangs:\n#{@served.output}") }

      assert_equal ["200"], answers.map(&:code).uniq, @served.output
      assert_equal ["true"], answers.map { |answer| answer.body.split.last }.uniq, "a class went away under its request"
      assert_equal "round#{round} Note true", @served.get("/levels").body
    end
  end
end
