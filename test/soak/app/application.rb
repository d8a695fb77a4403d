# frozen_string_literal: true

require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "action_controller/railtie"
require "solid_queue"
require "digest"
require "openssl"

# What an application does all day: queries, uploads, requests to another service, jobs, messages for all clients.
class Soak < Rails::Application
  config.load_defaults 8.0
  config.root = __dir__
  config.eager_load = true
  config.consider_all_requests_local = false
  config.secret_key_base = "0" * 64
  config.logger = Logger.new(nil)
  config.hosts.clear
  config.active_job.queue_adapter = :solid_queue
  config.solid_queue.logger = Logger.new(nil)
end

class Note < ActiveRecord::Base
end

# Leaves a note.
class Work < ActiveJob::Base
  def perform(token) = Note.create!(kind: "job", token:)
end

# What a WebSocket sends comes back.
class Echo
  def on_message(client, message) = client.write(message)
end

class SoakController < ActionController::API
  UPSTREAM = Heddle::HTTP::Client.new(ENV.fetch("SOAK_UPSTREAM"), timeout: { total: 10 })
  private_constant :UPSTREAM

  before_action { response.headers["x-worker"] = Process.pid.to_s }

  def page
    notes = Note.order(id: :desc).limit(20).load_async
    count = Note.where(kind: "note").where("id > ?", notes.last&.id || 0).count
    render json: { count:, notes: notes.map(&:attributes) }
  end

  # All streams have the note before the client has its answer.
  def note
    Note.create!(kind: "note", token: params.require(:token))
    Heddle::PubSub.publish("notes", params[:token])
    head :created
  end

  def upload = render(plain: Digest::SHA256.file(params.require(:file).tempfile.path).hexdigest)

  def fetch = render(plain: UPSTREAM.get("/").body)

  def job
    Work.perform_later(params.require(:token))
    head :accepted
  end

  # Ruby code that is preempted, and a native call that is offloaded.
  def compute
    deadline = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 0.03
    count = 0
    count += 1 while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < deadline
    key = OpenSSL::KDF.pbkdf2_hmac("soak", salt: "soak", iterations: 20_000, length: 32, hash: "SHA256")
    render plain: "#{count.positive?} #{key.unpack1("H*")}"
  end
end

Soak.initialize!
Soak.routes.draw do
  get "page" => "soak#page"
  post "note" => "soak#note"
  post "upload" => "soak#upload"
  get "fetch" => "soak#fetch"
  post "job" => "soak#job"
  get "compute" => "soak#compute"
  get "echo", to: ->(env) { Heddle::WebSocket.upgrade(env, Echo.new) }
  get "events", to: ->(env) { Heddle::EventStream.response("notes", since: env["HTTP_LAST_EVENT_ID"]) }
end
