# frozen_string_literal: true

require "test_helper"
require "heddle/rails"
require "minitest/mock"

# `rails server`, which becomes `heddle serve`.
class RailsWorkerStartTest < Minitest::Test
  WorkerStart = Heddle::Rails::WorkerStart
  Server = Struct.new(:server, :options) { prepend WorkerStart }
  private_constant :Server

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
end
