# frozen_string_literal: true

# test: once

require "test_helper"
require "support/bundle"
require "fileutils"
require "open3"
require "tmpdir"

# `bin/rails generate heddle:install` and `heddle:uninstall` in an application that `rails new` has just made.
class InstallTest < Minitest::Test
  GEMFILE = File.expand_path("../../examples/rails_postgresql/Gemfile", __dir__)
  HEDDLE = [RbConfig.ruby, File.expand_path("../../exe/heddle", __dir__)].freeze

  def setup
    skip "needs the gems of examples/rails_postgresql: bin/setup" unless Bundle.installed?(GEMFILE)
    @folder = File.realpath(Dir.mktmpdir)
  end

  def teardown
    FileUtils.remove_entry(@folder) if @folder
  end

  def run_program(*command, folder: "#{@folder}/shop", environment: {})
    git = { "GIT_CONFIG_GLOBAL" => File::NULL, "GIT_AUTHOR_NAME" => "test", "GIT_AUTHOR_EMAIL" => "test@localhost",
            "GIT_COMMITTER_NAME" => "test", "GIT_COMMITTER_EMAIL" => "test@localhost", "WEB_CONCURRENCY" => nil }
    output, status = Open3.capture2e(Bundle.environment(GEMFILE).merge(git, environment), *command, chdir: folder)

    assert_predicate status, :success?, output
    output
  end

  def test_generators_change_a_new_application_and_restore_it
    run_program(RbConfig.ruby, "-e", 'require "rails/cli"', "new", "shop", "--api", "--minimal", "--skip-active-record",
                "--skip-asset-pipeline", "--skip-bundle", "--quiet", folder: @folder)
    run_program("git", "add", "-A")
    run_program("git", "commit", "-qm", "New")
    output = run_program(RbConfig.ruby, "bin/rails", "generate", "heddle:install")

    assert_match(/^  \+ gem "heddle"$/, output)
    assert_equal [" M Gemfile", "?? config/heddle.rb"],
                 run_program("git", "status", "--short").lines(chomp: true)
    %w[development test production].each do |name|
      assert_includes run_program(*HEDDLE, "check", environment: { "RAILS_ENV" => name }), "config/heddle.rb"
    end
    run_program(RbConfig.ruby, "bin/rails", "generate", "heddle:uninstall")

    assert_empty run_program("git", "status", "--short")
  end
end
