# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "support/bundle"
require "tmpdir"

# Whether an application has chosen a gem, which decides what `rails server` and Capybara start.
class ChosenGemTest < Minitest::Test
  GEMSPEC = <<~RUBY
    Gem::Specification.new("capistrano3-puma", "1") do |gem|
      gem.files = []
      gem.summary = gem.authors = "a"
      gem.add_dependency("rack")
    end
  RUBY
  PROGRAM = 'require "heddle/rails"; p(%w[capistrano3-puma rack none].map { |name| Heddle::Rails.chosen?(name) })'
  private_constant :GEMSPEC, :PROGRAM

  def chosen(gemfile)
    Dir.mktmpdir do |folder|
      FileUtils.mkdir(File.join(folder, "own"))
      File.write(File.join(folder, "own/capistrano3-puma.gemspec"), GEMSPEC)
      heddle = "gem 'heddle', path: #{File.expand_path("../..", __dir__).dump}\n"
      File.write(File.join(folder, "Gemfile"), heddle + gemfile)
      output, status = Open3.capture2e(Bundle.environment(File.join(folder, "Gemfile")), RbConfig.ruby, "-e", PROGRAM,
                                       chdir: folder)
      skip "needs the gem rack: bin/setup" if output.include?("Could not find gem")

      assert_predicate status, :success?, output
      output.lines(chomp: true).last
    end
  end

  def test_a_gem_that_only_another_gem_needs_is_not_chosen
    assert_equal "[true, false, false]", chosen("gem 'capistrano3-puma', path: 'own'\n")
    assert_equal "[true, true, false]", chosen("gem 'capistrano3-puma', path: 'own'\ngem 'rack'\n")
  end
end
