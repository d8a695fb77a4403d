# frozen_string_literal: true

# What the checks ask of a request, one action for each question.
class ProbesController < ApplicationController
  skip_forgery_protection

  def broken = raise("on purpose, not #{41 + 1}")

  def missing = Post.find(0)

  def nap
    Current.visitor = params[:visitor]
    sleep params[:seconds].to_f
    render plain: Current.visitor
  end

  def echo
    render json: { method: request.method, length: request.content_length, type: request.media_type,
                   body: Digest::SHA256.hexdigest(request.raw_post), size: request.raw_post.bytesize,
                   parameters: request.request_parameters.transform_values { |value| describe(value) } }
  end

  def environment
    render json: { url: request.original_url, host: request.host, ip: request.remote_ip, ssl: request.ssl?,
                   path: request.path, query: request.query_parameters, xhr: request.xhr?.to_s,
                   cookie: request.cookies["flavour"], protocol: request.protocol }
  end

  def headers_of_all_kinds
    response.set_header("x-one", "1")
    cookies[:flavour] = "plain"
    cookies.signed[:secret] = "kept"
    session[:seen] = true
    render plain: "headers", status: :accepted
  end

  def visits
    session[:visits] = session[:visits].to_i + 1
    render plain: session[:visits].to_s
  end

  def kept
    fresh_when etag: "kept", last_modified: Time.utc(2026, 1, 2), public: true
    render plain: "kept" unless performed?
  end

  def file = send_file(Rails.root.join("public/large.bin"), type: "application/octet-stream")

  def data = send_data("a,b\n1,2\n", filename: "table.csv")

  def cached
    Rails.cache.write("greeting", params[:value]) if params[:value]
    render json: [Rails.cache.read("greeting"), Rails.cache.increment("count"), Rails.cache.class.name]
  end

  def work
    WorkJob.perform_later(params[:path])
    head :accepted
  end

  def say
    Turbo::StreamsChannel.broadcast_append_to("board", target: "messages", html: "<p>#{params[:text]}</p>")
    head :no_content
  end

  def log
    3.times do |number|
      Rails.logger.info("step #{number} of #{params[:visitor]}")
      sleep 0.02
    end
    head :ok
  end

  def stop_here
    answer = 42
    debugger # rubocop:disable Lint/Debugger
    render plain: "went on with #{answer}"
  end

  def streamed
    headers["last-modified"] = Time.now.httpdate
    render stream: true, layout: false
  end

  def lines
    headers["last-modified"] = Time.now.httpdate
    self.response_body = Enumerator.new { |out| 3.times { |number| out << "line #{number}\n" } }
  end

  def reloaded = render(plain: Greeting.text)

  def transaction
    Post.transaction do
      Post.create!(title: "rolled back")
      raise ActiveRecord::Rollback
    end
    render json: { rolled_back: Post.where(title: "rolled back").count, pool: Post.connection_pool.stat.slice(:size) }
  end

  private

  def describe(value)
    return value unless value.is_a?(ActionDispatch::Http::UploadedFile)

    [value.original_filename, value.content_type, value.size, Digest::SHA256.hexdigest(value.read)]
  end
end
