# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require_relative "cluster/cluster_case"

# `HEDDLE_PROTECT=off`, `protect :off` and a program that only loads the gem leave Ruby as it is.
class ProtectOffTest < Minitest::Test
  include ClusterCase

  TABLES = File.expand_path("../support/import_tables", __dir__)
  LIBRARY = File.expand_path("../../lib", __dir__)
  OFF = { "HEDDLE_PROTECT" => "off" }.freeze
  # Thread variables that each request has for itself are an option of their own.
  SERVING = { "RACK_ENV" => "production", "HEDDLE_ISOLATE" => "off", "LD_BIND_NOW" => "1" }.freeze

  # What a process is like: its import tables, its extensions, and what is Heddle's in Ruby's own modules.
  STATE = <<~RUBY.freeze
    require #{TABLES.dump}
    require "json"
    STATE = lambda do |names = ImportTables.core_names|
      extensions = $LOADED_FEATURES.grep(/\\.so\\z/).reject { |file| file.end_with?("/heddle.so") }
      { tables: ImportTables.read, extensions:, core: ImportTables.core(names, #{LIBRARY.dump}),
        threads: Thread.list.flat_map(&:singleton_methods) }
    end
  RUBY

  APP = "#{STATE}run { [200, {}, [JSON.generate(STATE.call(#{%w[IO Kernel Process Signal Thread].inspect}))]] }".freeze

  def setup
    skip "reads tables of Linux with 64 bits" unless RbConfig::CONFIG["arch"].match?(/\A(?:x86_64|aarch64)-linux/)
    super
  end

  def test_serving_alone_with_the_variable_off_patches_nothing
    write("config.ru", APP)
    serve(workers: 0, environment: { **SERVING, **OFF })

    assert_pristine JSON.parse(served.get("/").body)
    assert_match(/^Protection: none; off: .*guard pages.*option protect, HEDDLE_PROTECT/, served.output)
  end

  def test_serving_in_development_with_the_variable_off_patches_nothing
    write("config.ru", APP)
    serve(workers: 0, environment: { **SERVING, **OFF, "RACK_ENV" => "development" })

    assert_pristine JSON.parse(served.get("/").body)
  end

  def test_workers_with_the_configuration_off_are_not_patched
    write("config.ru", APP)
    write("config/heddle.rb", "protect :off\n")
    serve(environment: SERVING)

    assert_pristine JSON.parse(served.get("/").body)
  end

  def test_protected_workers_are_patched
    skip unless Heddle::Platform.untested.nil?
    write("config.ru", APP)
    serve(environment: SERVING)
    found = JSON.parse(served.get("/").body)

    refute_empty differences(found)
    assert_includes found["core"].fetch("Thread").flatten, "Heddle::Scheduler::InterruptMasks"
    assert_includes found["core"].fetch("Kernel").flatten, "Heddle::Preemption::SignalHandlers::Setting"
  end

  def test_loading_the_gem_patches_nothing
    assert_pristine program('require "heddle"; puts JSON.generate(STATE.call)')
  end

  def test_a_program_with_the_variable_off_patches_nothing
    assert_pristine program('require "heddle"; puts JSON.generate(Heddle.run { STATE.call })', OFF)
  end

  private

  def assert_pristine(found)
    assert_empty differences(found)
    assert_empty(found["core"].select { |_, parts| parts.flatten.any? })
    assert_empty found["threads"]
  end

  # Slots that lead elsewhere than those of a plain Ruby that has loaded the same extensions.
  def differences(found)
    plain = plain_tables(found["extensions"])
    shared = plain.keys & found["tables"].keys

    assert_operator shared.size, :>, 5
    assert_empty(plain.keys - shared)
    shared.flat_map do |file|
      found["tables"][file].filter_map do |slot, to|
        "#{file} #{slot}: #{to}, in a plain Ruby #{plain[file][slot]}" if to != plain[file][slot]
      end
    end
  end

  def plain_tables(extensions)
    load = extensions.map { |file| "require #{file.dump}" }.join("\n")
    program("#{load}\nputs JSON.generate(STATE.call([]))")["tables"]
  end

  def program(code, environment = {})
    output, errors, status = Open3.capture3({ "LD_BIND_NOW" => "1", "HEDDLE_PROTECT" => nil, **environment },
                                            RbConfig.ruby, "-I#{LIBRARY}", "-e", STATE + code)

    assert_predicate status, :success?, errors
    JSON.parse(output)
  end
end
