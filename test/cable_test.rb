# frozen_string_literal: true

require "test_helper"
require "examples/served_example"
require "open3"
require "tmpdir"

class CableTest < Minitest::Test
  # The Action Cable of Rails 8.1. A class Socket is always there.
  APPLICATION = <<~RUBY
    %w[rails action_controller/railtie heddle socket].each { |name| require name }
    module ActionCable
      module Server
      end
    end
    $LOADED_FEATURES << "action_cable.rb"

    class Told < Rails::Application
      config.eager_load = false
      config.secret_key_base = "0" * 64
      config.logger = Logger.new(nil)
      config.heddle.cable = true
    end
    Told.initialize!
    Told.routes.draw { root to: ->(_env) { [200, {}, ["served"]] } }
  RUBY

  def setup
    skip "needs the gems of examples/rails: bin/setup" unless ServedExample.gems?("rails")
    @folder = Dir.mktmpdir
    File.write("#{@folder}/application.rb", APPLICATION)
    File.write("#{@folder}/config.ru", "require_relative 'application'\nrun Told\n")
    @environment = ServedExample.bundle("rails").merge("RAILS_ENV" => "production")
  end

  def teardown
    FileUtils.rm_rf(@folder) if @folder
  end

  def test_an_action_cable_whose_server_cannot_be_replaced_is_rejected_where_it_is_served
    output, status = Open3.capture2e(@environment, *ServedProcess::HEDDLE, "serve", "-p", "0", chdir: @folder)

    assert_equal 1, status.exitstatus, output
    assert_match(/\Aheddle: config.heddle.cable needs Action Cable of Rails 8.2, or the gem actioncable-next.*\n\z/,
                 output)
  end

  def test_a_console_and_a_migration_need_no_cable
    library = File.expand_path("../lib", __dir__)
    output, = Open3.capture2e(@environment, RbConfig.ruby, "-I", library, "-e", "require './application'; puts :loaded",
                              chdir: @folder)

    assert_equal "loaded\n", output
  end

  def test_mode_thread_needs_no_cable
    served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "-p", "0", "--mode", "thread", "-w", "0"],
                               environment: @environment, folder: @folder, patience: 300)

    assert_equal "served", served.get("/").body, served.output
  ensure
    served&.stop
  end
end
