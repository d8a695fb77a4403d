# frozen_string_literal: true

require "test_helper"
require "support/served_process"
require "open3"
require "heddle/cli"
require_relative "application_folder"

# A library that the command needs and that can't be loaded: one message that says what to do, and no backtrace.
class LoadFailureTest < Minitest::Test
  include ApplicationFolder

  # No file that is an extension is in it.
  def break_extension(name, folder)
    file = write("#{folder}/#{name}_extension.#{RbConfig::CONFIG["DLEXT"]}", "no library")
    write("#{folder}/#{name}.rb", "require #{file.inspect}")
  end

  def assert_fails(expected, *arguments, load_path: "broken", **environment)
    environment = { "RUBYLIB" => [File.join(@folder, load_path), ENV.fetch("RUBYLIB", nil)].compact.join(":"),
                    "XDG_RUNTIME_DIR" => @folder, **environment.transform_keys(&:to_s) }
    output, errors, status = Open3.capture3(environment, *ServedProcess::HEDDLE, *arguments, chdir: @folder)
    errors = errors.lines.grep_v(/\AIgnoring /).join

    assert_equal ["", 1], [output, status.exitstatus], errors
    assert_match expected, errors
    refute_match(/^\s+from |:\d+:in /, errors)
  end

  def test_an_extension_that_does_not_work
    break_extension("json", "broken")
    expected = %r{\Aheddle: /\S+json_extension\.\w+: .* \(required at \S*broken/json\.rb:1\)
heddle: This extension does not work with Ruby #{RUBY_VERSION},.* Reinstall Ruby, or the gem .*$}

    [%w[serve -p 0], %w[serve -p 0 --workers 2], %w[demo -p 0], %w[status], %w[top], %w[doctor]].each do |arguments|
      assert_fails(expected, *arguments)
    end
  end

  def test_an_extension_of_a_gem
    folder = "gems/json-2.9.1/lib"
    break_extension("json", folder)

    assert_fails(/^heddle: The extension of the gem json does not work .*gem pristine json$/, "serve", "-p", "0",
                 load_path: folder)
  end

  # The process that loads the application needs it, and no process before.
  def test_a_library_that_the_workers_need
    %w[erb uri].each do |name|
      file = write("broken/#{name}.rb", "raise LoadError, 'cannot load such file -- #{name}.so'")
      expected = %r{\Aheddle: cannot load such file -- #{name}\.so \(required at \S*broken/#{name}\.rb:1\)
(?:heddle: )?Ruby \S+ can't find this file\. Install the gem}

      [%w[--workers 0], %w[--workers 2]].each { |workers| assert_fails(expected, "serve", "-p", "0", *workers) }
      File.delete(file)
    end
  end

  def test_the_place_is_the_first_that_is_not_of_require_itself
    error = LoadError.new("cannot load such file -- oil")
    error.set_backtrace(["<internal:/usr/lib/ruby/3.4.0/rubygems/core_ext/kernel_require.rb>:136:in 'require'",
                         "/usr/lib/ruby/3.4.0/bundled_gems.rb:82:in 'require'",
                         "/gems/bootsnap-1.18.4/lib/bootsnap/load_path_cache.rb:30:in 'require'",
                         "/srv/rubygems/vendor/ruby/3.4.0/bundler/gems/loom-1a2b3c/lib/loom.rb:7:in '<main>'"])

    assert_includes Heddle::LoadFailure.new(error).message, "(required at /srv/rubygems/vendor/ruby/3.4.0/bundler/" \
                                                            "gems/loom-1a2b3c/lib/loom.rb:7)"
  end

  def test_paths_that_are_not_utf8
    error = LoadError.new("cannot load such file -- caf\xE9")
    error.set_backtrace(["/srv/caf\xE9/app.rb:7:in '<main>'"])

    assert_match(/\Acannot load such file -- caf\\xE9 \(required at .*app\.rb:7\)/,
                 Heddle::LoadFailure.new(error).message)
  end

  # RubyGems refuses it, but a checkout has none.
  def test_a_ruby_that_is_too_old
    program = "Object.send(:remove_const, :RUBY_VERSION); RUBY_VERSION = '3.1.2'; load ARGV.shift"
    output, errors, status = Open3.capture3(RbConfig.ruby, "-e", program, "#{ROOT}/exe/heddle", "--version")

    assert_equal ["", "heddle: Heddle needs Ruby 3.3 or newer, but this is Ruby 3.1.2\n", 1],
                 [output, errors, status.exitstatus]
  end

  def test_the_extension_of_heddle_is_not_built
    assert_fails(/\Aheddle: Heddle's C extension is not built for Ruby .*gem pristine heddle.*\n\z/,
                 "serve", "-p", "0", HEDDLE_NATIVE: "nonsense")
  end
end
