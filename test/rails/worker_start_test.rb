# frozen_string_literal: true

require "test_helper"
require "heddle/rails"
require "minitest/mock"

# `rails server`, which becomes `heddle serve`.
class RailsWorkerStartTest < Minitest::Test
  WorkerStart = Heddle::Rails::WorkerStart
  Handler = Data.define(:name)
  Server = Struct.new(:server, :options) do
    prepend WorkerStart

    def served_url = "http://0.0.0.0:3000"
  end
  private_constant :Handler, :Server

  # @return [Array] what is executed
  def executed(**options)
    given = nil
    WorkerStart.stub(:arguments, ["serve"]) do
      Kernel.stub(:exec, ->(*all) { given = all }) { Server.new(nil, options).start }
    end
    given
  end

  def test_the_flag_log_to_stdout_becomes_the_variable_of_rails
    assert_equal [{ "RAILS_LOG_TO_STDOUT" => "1" }, RbConfig.ruby], executed(log_stdout: true).first(2)
    assert_equal [{}, RbConfig.ruby], executed.first(2)
  end

  # Rails knows no addresses of config/heddle.rb, for example a unix socket.
  def test_rails_prints_no_address_where_heddle_serves
    assert_nil Server.new(Handler.new("Rackup::Handler::Heddle"), {}).served_url
    assert_equal "http://0.0.0.0:3000", Server.new(Handler.new("Rackup::Handler::Falcon"), {}).served_url
  end
end
