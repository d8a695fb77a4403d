# frozen_string_literal: true

require_relative "spec_helper"

RSpec.describe Shop do
  include Rack::Test::Methods

  def app = Capybara.app

  it "answers" do
    get "/"
    expect(last_response.body).to eq('{"hello":"world"}')
  end

  it "is visited", type: :feature do
    visit "/nowhere"
    expect(page).to have_content("not found")
  end

  it "is served by Capybara's server" do
    server = Capybara::Server.new(app).boot
    answers = Array.new(3) { Thread.new { Net::HTTP.get(server.host, "/named/one", server.port) } }.map(&:value)
    expect(answers.uniq.size).to eq(1)
  end
end
